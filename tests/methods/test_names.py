"""`host+modifier+...` on the command line, in files and in records."""

import json

import pytest

from semigrad.errors import InputError
from semigrad.methods import SNTG, VAT, Ent, FastSWA, MeanTeacher, Meta, MetaGradient, VAdDTerm
from semigrad.models import SmallConv
from semigrad.run import Run, configure, from_layers
from semigrad.training.setup import set_up
from tests.small_runs import FLAGS, cli, command


def method(name, **fields):
    return configure("digits@40", method={"name": name, **fields}).method


def test_a_name_is_read_from_left_to_right():
    assert method("vat+ent+sntg") == SNTG(Ent(VAT()))
    assert method("vat+vadd") == VAdDTerm(VAT())
    assert method("mean-teacher+fast-swa") == FastSWA(MeanTeacher())


def test_fields_of_the_host_and_of_its_modifiers():
    given = method("mean-teacher+fast-swa+meta", horizon=7.0, meta={"beta": 0.5}, **{"fast-swa": {"cycle": 0.2}})
    assert given == Meta(FastSWA(MeanTeacher(horizon=7.0), cycle=0.2), beta=0.5)


def test_a_record_rebuilds_the_run():
    run = Run(data="digits@40", model=SmallConv(), method=Meta(FastSWA(MeanTeacher(horizon=7.0), cycle=0.2), beta=0.5))
    described = json.loads(json.dumps(run.to_dict()))
    assert described["method"]["name"] == "mean-teacher+fast-swa+meta"
    assert from_layers("digits@40", [described]) == run
    assert (
        run.key
        != Run(data="digits@40", model=SmallConv(), method=Meta(FastSWA(MeanTeacher(horizon=7.0)), beta=0.5)).key
    )


def test_a_later_layer_keeps_the_fields_of_one_host_and_drops_those_of_another():
    below = {"method": {"name": "mean-teacher+fast-swa", "horizon": 7.0, "fast-swa": {"cycle": 0.2, "start": 0.5}}}
    same = from_layers("digits@40", [below, {"model": "small-conv", "method": {"fast-swa": {"cycle": 0.3}}}]).method
    assert same == FastSWA(MeanTeacher(horizon=7.0), cycle=0.3, start=0.5)
    changed = from_layers("digits@40", [below, {"model": "small-conv", "method": "mean-teacher+sntg"}]).method
    assert changed == SNTG(MeanTeacher(horizon=7.0))
    other = from_layers("digits@40", [below, {"model": "small-conv", "method": "vat"}]).method
    assert other == VAT()
    svhn = configure("svhn@1000", method="meta-gradient+fast-swa").method
    assert svhn == FastSWA(MetaGradient(gamma=0.1))  # the data's default of the host


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("mean-teacher+fastswa", {}, "Did you mean 'fast-swa'"),
        ("men-teacher+fast-swa", {}, "Did you mean 'mean-teacher'"),
        ("fast-swa", {}, "modifier of another method"),
        ("vat+ent+ent", {}, "ent twice"),
        ("vat+ent", {"ent": 3}, "a table"),
        ("vat+ent", {"ent": {"wait": 1.0}}, "Did you mean 'weight'"),
        ("vat+ent", {"ent": {"weight": "much"}}, "modifier ent: weight takes a number"),
        ("vat+ent", {"ent": {"host": "vat"}}, "no field of modifier ent called 'host'"),
        ("vat+", {}, "modifier"),
    ],
)
def test_what_is_no_name_is_refused(name, fields, message):
    with pytest.raises(InputError, match=message):
        method(name, **fields)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("supervised+meta", "trains on none"),
        ("meta-gradient+meta", "already"),
        ("vat+meta", "trains on none"),
        ("supervised+ent", "unlabeled"),
        ("supervised+sntg", "targets"),
        ("supervised+vadd", "unlabeled"),
        ("entropy-minimization+ent", "already"),
        ("vadd+vadd", "already"),
        ("mean-teacher+swa+fast-swa", "already"),
    ],
)
def test_a_combination_that_makes_no_sense_is_refused_with_a_reason(name, message):
    with pytest.raises(InputError, match=message):
        set_up(configure("digits@40", method=name))


def test_flags_of_a_modifier(tmp_path, capsys):
    flags = ("--method", "mean-teacher+fast-swa", "--horizon", "3", "--fast-swa.cycle", "0.2", "--steps", "6")
    assert cli("train", "digits@40", *FLAGS, *flags, "--out", tmp_path / "run") == 0
    described = json.loads((tmp_path / "run" / "run.json").read_text())["run"]["method"]
    assert (described["horizon"], described["fast-swa"]["cycle"]) == (3.0, 0.2)
    assert "fastSWA" in json.loads((tmp_path / "run" / "result.json").read_text())["evaluated"]


def test_help_of_a_modified_method_shows_both():
    shown = command("train", "--method", "mean-teacher+fast-swa", "--help").stdout
    assert "--horizon" in shown
    assert "--fast-swa.cycle" in shown
    assert "Length of a cycle" in shown
    assert "host" not in shown.lower().replace("the host's", "")
