"""The curves of what to label next: a stopped measurement goes on, and settings are never mixed."""

from __future__ import annotations

import dataclasses
import json

import pytest
from benchmarks.label_next import Options, main

from benchmarks import label_next
from semigrad.errors import InputError
from semigrad.run import configure

SMALL = Options(methods=("supervised",), strategies=("random", "margin"), seeds=1, rounds=2, steps=2, batch=8)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Records in a folder of the test's own; the list hears of every training with its number of labels."""
    for name, path in (("KEPT", "kept.json"), ("PAGE", "page.md"), ("PICTURES", "pictures")):
        monkeypatch.setattr(label_next, name, tmp_path / path)
    heard, train_on = [], label_next.train_on

    def listen(options, dataset, labeled, *rest):
        heard.append(len(labeled))
        return train_on(options, dataset, labeled, *rest)

    monkeypatch.setattr(label_next, "train_on", listen)
    return heard


def test_what_is_on_record_is_not_computed_again_and_a_stopped_measurement_goes_on(trained):
    main(SMALL)
    assert trained == [10, 20, 20]  # the first round is the same for both
    whole = label_next.KEPT.read_text()
    main(SMALL)
    assert trained == [10, 20, 20]
    cut = json.loads(whole)
    rounds = cut["digits"]["supervised"]["margin"]["0"]
    rounds.pop()
    label_next.KEPT.write_text(json.dumps(cut))
    main(SMALL)
    assert trained == [10, 20, 20, 20]
    assert label_next.KEPT.read_text() == whole
    assert "| margin | " in label_next.PAGE.read_text()


@pytest.mark.parametrize("change", [{"steps": 3}, {"batch": 4}, {"start": 20}, {"rounds": 3}])
def test_other_settings_are_refused_before_anything_is_trained(trained, change):
    settings = {"steps": 2, "batch": 8, "start": 10, "rounds": 2}
    label_next.KEPT.write_text(json.dumps({"digits": {"supervised": {"settings": settings}}}))
    with pytest.raises(InputError, match="digits, supervised, with"):
        main(dataclasses.replace(SMALL, **change))
    assert trained == []


def test_the_page_is_what_the_records_give(tmp_path, monkeypatch):
    page = label_next.PAGE.read_text("utf-8")
    monkeypatch.setattr(label_next, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(label_next, "PICTURES", tmp_path / "pictures")
    main(Options(only_page=True))
    assert (tmp_path / "page.md").read_text("utf-8") == page


def test_house_numbers_are_trained_on_the_small_network():
    assert configure("svhn", method="supervised", steps=800, batch=32).model_name == "compact-conv"
