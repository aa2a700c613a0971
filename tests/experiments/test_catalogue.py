"""The catalogue against the paper's tables, whose rows stand here as its LaTeX has them, and every plan at every
scale."""

from collections import Counter
from pathlib import Path

import pytest

from semigrad.data.opening import divide, open_data
from semigrad.data.split import DataSpec
from semigrad.errors import InputError
from semigrad.experiments import EXPERIMENTS, SCALES, find_experiment
from semigrad.experiments.experiment import Column, make_run
from semigrad.experiments.scales.sources import data
from semigrad.methods import METHODS, MODIFIERS, FixMatch, MetaMatch
from semigrad.run import configure

TABLES = {
    "table1": r"""
        Method & SVHN@1000 & CIFAR-10@4000 & CIFAR-100@10000 \\
        Labeled-Only & 9.76\% & 15.43\% & 38.74\% \\
        Pi-Model & 4.82\% & 12.36\% & 39.19\% \\
        TE &  4.42\% &  12.16\% & 38.65\% \\
        MT & 3.95\% & 12.31\% & - \\
        MT+SNTG & 3.86\% & 10.93\% & - \\
        VAT & 5.42\% & 11.36\% & - \\
        VAT+Ent & 3.86\% & 10.55\% & - \\
        VAT+Ent+SNTG & 3.83\% & ~~9.89\% & - \\
        VAT+VAdD & 3.55\% & ~~9.22\% & - \\
        MA-DNN & 4.21\% & 11.91\% & 34.51\% \\
        Co-training & 3.29\% & ~~8.35\% &  34.63\% \\
        MT+fastSWA & - & ~~9.05\% & 33.62\% \\
        TNAR-VAE & 3.74\% & ~~8.85\% & - \\
        ADA-Net & 4.62\% & 10.30\% & - \\
        ADA-Net+fastSWA & - &  ~~8.72\% & - \\
        DualStudent & - & ~~8.89\% & 32.77\% \\
        Ours &  3.15\% &  ~~7.78\% & 30.74\% \\
        Fully-Supervised & 2.67\% & ~~4.88\% & 22.10\% \\""",
    "table2": r"""
        Labels & CIFAR-10@1000 & CIFAR-10@2000 & CIFAR-10@4000 & CIFAR-100@6000 & CIFAR-100@8000 & CIFAR-100@10000 \\
        fastSWA & 6.6\% & 5.7\% & 5.0\% & - & - & 28.0\% \\
        Ours & 6.3\% & 5.2\% & 4.1\% & 26.7\% & 25.1\% & 22.9\% \\""",
    "table3": r"""
        Method & ImageNet top-1 & ImageNet top-5 \\
        Labeled-Only & 53.65\% & 31.01\% \\
        MT  & 49.07\% & 23.59\% \\
        Co-training  & 46.50\% & 22.73\% \\
        ADA-Net & 44.91\% & 21.18\% \\
        Ours & 44.87\% & 18.88\% \\
        Fully-Supervised & 29.15\% & 10.12\% \\""",
    "table4": r"""
        Row & SVHN@1000 & CIFAR-10@4000 & CIFAR-100@10000 \\
        Labeled-Only & 9.76\% & 15.43\% & 38.74\% \\
        Meta & 3.68\% & 11.63\% & 35.40\% \\
        Mix-Up & 5.60\% & 11.10\% & 32.67\% \\
        Meta + Mix-Up & 3.15\% & ~~7.78\% & 30.74\% \\""",
    "table5": r"""
        & CIFAR-10@4000 without mixup & CIFAR-10@4000 with mixup & SVHN@1000 without mixup & SVHN@1000 with mixup \\
        ADA-Net & 18.67\% & 8.87\% & 10.76\% & 5.90\% \\
        Ours & 11.63\% & 7.78\%  &  3.86\% & 3.15\% \\""",
}  # fmt: skip

EVERY_PLAN = [(name, scale) for name in EXPERIMENTS for scale in SCALES]


def printed(name):
    """Rows, columns and figures of a table of the paper."""
    lines = [line.strip().removesuffix(r"\\").split("&") for line in TABLES[name].strip().splitlines()]
    (_, *columns), *rows = [[cell.strip(" ~%\\") for cell in line] for line in lines]
    figures = {
        (row, column): float(figure)
        for row, *cells in rows
        for column, figure in zip(columns, cells, strict=True)
        if figure != "-"
    }
    return tuple(row for row, *_ in rows), tuple(columns), figures


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_rows_columns_and_figures_of_the_paper(name):
    experiment = EXPERIMENTS[name]
    rows, columns, figures = printed(name)
    assert experiment.rows == rows
    assert experiment.columns("paper") == columns
    assert dict(experiment.published) == figures


COLUMNS = {
    "CIFAR-10@4000": Column("CIFAR-10", "4000"),
    "CIFAR-10@4000 with mixup": Column("CIFAR-10", "4000", "with mixup"),
    "ImageNet top-5": Column("ImageNet", figure="top-5", measure="error_top5"),
    "mismatch 25%": Column(condition="mismatch 25%"),
    "npz:data.npz@10 (0f3c)": Column("npz:data.npz@10 (0f3c)"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_name_of_a_column_is_made_of_what_it_is(name):
    assert COLUMNS[name].name == name


@pytest.mark.parametrize(("name", "scale"), EVERY_PLAN)
def test_every_column_says_what_it_is(name, scale):
    experiment = EXPERIMENTS[name]
    for column in map(experiment.column, experiment.columns(scale)):
        assert column in experiment.plans[scale].described.values()
        if experiment.kind == "labels":
            assert {cell.run.data for cell in experiment.cells(scale) if cell.column == column.name} == {data(column)}
    assert {column for _, column in experiment.published} <= set(experiment.columns("paper"))


def test_what_goes_beyond_the_paper_is_marked_and_says_so():
    beyond = {name for name, experiment in EXPERIMENTS.items() if experiment.beyond}
    assert beyond == {
        "ablation-beta", "ablation-operator", "ablation-cheaper", "ablation-steps", "meta-plugin", "realistic"
    }  # fmt: skip
    assert {name for name in EXPERIMENTS if "Beyond the paper" in EXPERIMENTS[name].claim} == beyond


def test_the_manual_names_every_experiment():
    first = (Path(__file__).parents[2] / "docs" / "reproducing.md").read_text("utf-8").partition("```")[0]
    spelled_out = {f"table{number}" for number in (2, 3, 4)}  # table1 to table5
    assert all(f"`{name}`" in first for name in EXPERIMENTS.keys() - spelled_out)


def test_every_printed_figure_has_a_run_at_the_scale_of_the_paper():
    beyond = {"table2": {("fastSWA", "CIFAR-100@6000"), ("fastSWA", "CIFAR-100@8000")}}  # to compare ours with
    for name in TABLES:
        experiment = EXPERIMENTS[name]
        assert set(experiment.plans["paper"].runs) == set(experiment.published) | beyond.get(name, set())


def test_fast_swa_counts_its_epochs_by_the_unlabeled_images():
    """180 epochs and 100 or 20 cycles of 30, each a pass over what is unlabeled, 97 images a step."""
    runs = {c.column: c.run for c in EXPERIMENTS["table2"].cells("paper", 1) if c.row == "fastSWA"}
    assert {column: run.steps for column, run in runs.items()} == {
        "CIFAR-10@1000": 3180 * 505, "CIFAR-10@2000": 3180 * 494, "CIFAR-10@4000": 3180 * 474,
        "CIFAR-100@6000": 780 * 453, "CIFAR-100@8000": 780 * 432, "CIFAR-100@10000": 780 * 412,
    }  # fmt: skip
    assert {(run.batch, run.unlabeled_rows, run.weight_decay) for run in runs.values()} == {(31, 97, 2e-4)}
    assert {(run.data.partition("@")[0], run.lr) for run in runs.values()} == {("cifar10", 0.05), ("cifar100", 0.1)}
    assert {cell.run.model_name for cell in EXPERIMENTS["table2"].cells("paper", 1)} == {"shake-shake-26"}


def test_co_training_on_imagenet_is_trained_as_our_row_with_its_own_weights_and_a_note():
    experiment = EXPERIMENTS["table3"]
    described = {cell.row: cell.run.to_dict() for cell in experiment.cells("paper")}
    small = make_run({"data": "cifar10@4000", "recipe": "co-training-cifar10"}, 0).to_dict()
    assert described["Co-training"] == {**described["Ours"], "method": small["method"]}
    assert any("Co-training" in note and "no published settings" in note for note in experiment.notes_at("paper"))


def test_the_inconsistencies_of_the_paper_are_told():
    text = " ".join(EXPERIMENTS["table5"].notes_at("laptop"))
    assert all(figure in text for figure in ("3.68", "3.86", "8.87", "10.30", "5.90", "4.62", "8.72"))
    plugin = EXPERIMENTS["meta-plugin"]
    assert not plugin.published
    assert any("Unpublished" in note and "6.24" in note and "6.02" in note for note in plugin.notes)


@pytest.mark.parametrize(("name", "scale"), EVERY_PLAN)
def test_every_row_column_and_seed_is_a_run_of_its_own(name, scale):
    experiment = EXPERIMENTS[name]
    cells = experiment.cells(scale)
    measured = Counter((cell.run.key, experiment.measure(cell.column)) for cell in cells)
    assert set(measured.values()) == {1}
    assert len({(cell.row, cell.column, cell.run.seed) for cell in cells}) == len(cells)


@pytest.mark.parametrize(("name", "scale"), EVERY_PLAN)
def test_every_run_is_sound(name, scale):
    experiment = EXPERIMENTS[name]
    cells = experiment.cells(scale, seeds=1)
    assert {cell.column for cell in cells} == set(experiment.columns(scale))
    assert {cell.row for cell in cells} == set(experiment.rows_at(scale))
    for cell in cells:
        run = cell.run
        assert run.problems() == []
        assert run.method.problems(run.batch, run.unlabeled_rows) == []


def test_seeds_are_as_asked_for_or_as_the_scale_has_them():
    experiment = EXPERIMENTS["table4"]
    own = Counter((cell.column, cell.row) for cell in experiment.cells("laptop"))
    assert own["digits@40", "Meta"] == 5
    assert own["SVHN@1000", "Meta"] == 1
    asked = experiment.cells("laptop", seeds=2)
    assert Counter((cell.column, cell.run.seed) for cell in asked)["SVHN@1000", 1] == 4
    assert [cell.run.seed for cell in asked] == sorted(cell.run.seed for cell in asked)
    with pytest.raises(InputError, match="at least 1 and at most 100; given: 0"):
        experiment.cells("laptop", seeds=0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["table1", "table3"])
def test_fully_supervised_uses_every_label_and_labeled_only_as_many_as_the_method(name, scale):
    for cell in EXPERIMENTS[name].cells(scale, seeds=1):
        spec = DataSpec.parse(cell.run.data)
        assert ((spec.labels, spec.share) == (None, None)) == (cell.row == "Fully-Supervised")
        if cell.row in ("Labeled-Only", "Fully-Supervised"):
            assert cell.run.method_name == "supervised"
            (ours,) = [c.run for c in EXPERIMENTS[name].cells(scale, 1) if (c.row, c.column) == ("Ours", cell.column)]
            same = {"data": "", "method": ""}
            assert {**cell.run.to_dict(), **same} == {**ours.to_dict(), **same}
            assert cell.row == "Fully-Supervised" or cell.run.data == ours.data


def test_every_row_of_the_miniature_of_table1_trains_the_method_of_its_name():
    cells = {cell.row: cell.run.method_name for cell in EXPERIMENTS["table1"].cells("laptop", seeds=1)}
    words = {"Pi-Model": "pi-model", "TE": "temporal-ensembling", "MT": "mean-teacher", "TNAR-VAE": "tnar"}
    words |= {"Labeled-Only": "supervised", "Fully-Supervised": "supervised", "Ours": "meta-gradient"}
    words |= {"DualStudent": "dual-student", "fastSWA": "fast-swa"}
    for row, name in cells.items():
        assert name == (words.get(row) or "+".join(words.get(part, part.lower()) for part in row.split("+")))
        assert all(part in {**METHODS, **MODIFIERS} for part in name.split("+"))


def test_both_errors_of_table3_come_from_one_run():
    experiment = EXPERIMENTS["table3"]
    for scale in SCALES:
        first, second = experiment.columns(scale)
        assert (experiment.measure(first), experiment.measure(second)) == ("error", "error_top5")
        keys = [{c.run.key for c in experiment.cells(scale) if c.column == column} for column in (first, second)]
        assert keys[0] == keys[1]


def test_runs_are_shared_by_the_experiments_that_need_them():
    """The rows of Table 4 that Table 1 has too are the same runs."""
    main = {(cell.row, cell.column): cell.run.key for cell in EXPERIMENTS["table1"].cells("paper", 1)}
    ablation = {(cell.row, cell.column): cell.run.key for cell in EXPERIMENTS["table4"].cells("paper", 1)}
    for column in ("SVHN@1000", "CIFAR-10@4000", "CIFAR-100@10000"):
        assert ablation["Labeled-Only", column] == main["Labeled-Only", column]
        assert ablation["Meta + Mix-Up", column] == main["Ours", column]


@pytest.mark.parametrize("scale", ["laptop", "overnight", "paper"])
def test_the_curves_of_pictures_are_of_runs_of_table3(scale):
    def keys(name, row):
        cells = [cell for cell in EXPERIMENTS[name].cells(scale, 1) if cell.row == row]
        return {cell.run.key for cell in cells if "ImageNet" in cell.column}

    for row in ("Labeled-Only", "Ours"):
        assert keys("figure-accuracy", row) == keys("table3", row) != set()


def test_what_a_scale_has_beside_the_rows_of_the_paper_comes_last():
    experiment = EXPERIMENTS["table1"]
    assert experiment.rows_at("laptop") == experiment.rows_at("paper") == experiment.rows
    beyond = ("Labeled-Only (strong)", "MixMatch", "ReMixMatch", "FixMatch", "Meta-Match")
    assert experiment.rows_at("overnight") == (*experiment.rows, *beyond)
    beside = {cell.row: cell.run.to_dict()["method"] for cell in experiment.cells("overnight", 1)}
    assert beside["Labeled-Only (strong)"] == {**beside["Labeled-Only"], "strong": True}


def test_the_claims_are_about_rows():
    for experiment in EXPERIMENTS.values():
        known = {row for scale in SCALES for row in experiment.rows_at(scale)}
        assert {row for pair in experiment.contrasts for row in pair} <= known


def test_every_row_overnight_has_one_budget_network_and_schedule():
    """What differs is the row's own: its method; fastSWA has its cycles there too."""
    for name in ("table1", "table2", "table4", "table5"):
        by_data = {}
        for cell in EXPERIMENTS[name].cells("overnight", 1):
            described = cell.run.to_dict()
            shared = {key: value for key, value in described.items() if key not in ("data", "method")}
            by_data.setdefault(DataSpec.parse(cell.run.data).name, []).append(shared)
        assert all(shared == rows[0] for rows in by_data.values() for shared in rows)


def test_the_ablation_turns_meta_and_mixup_on_and_off():
    for scale in SCALES:
        for cell in EXPERIMENTS["table4"].cells(scale, 1):
            if cell.row.startswith("Labeled-Only"):
                assert cell.run.method_name == "supervised"
            elif cell.row == "Meta-Match":
                assert cell.run.method == MetaMatch()
            elif cell.row == "FixMatch":  # beside them
                assert cell.run.method == FixMatch(threshold=0.8 if scale == "overnight" else 0.95)
            else:
                method = cell.run.to_dict()["method"]
                assert (method["meta"], method["mixup"]) == ("Meta" in cell.row, "Mix-Up" in cell.row)


def test_only_the_curves_and_table3_which_shares_their_runs_look_at_the_test_part_on_the_way():
    for name, scale in EVERY_PLAN:
        for cell in EXPERIMENTS[name].cells(scale, 1):
            run = cell.run
            if name == "figure-accuracy":
                assert run.steps // run.test_every >= 3
            elif name != "table3":
                assert run.test_every == 0
            assert run.validate_every == 0


@pytest.mark.parametrize("scale", ["smoke", "laptop"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_digits_can_be_divided_as_every_run_asks(name, scale):
    dataset = open_data("digits", configure("digits"))
    for cell in EXPERIMENTS[name].cells(scale):
        run, asked = cell.run, DataSpec.parse(cell.run.data)
        if asked.name != "digits":
            continue
        restricted, split = divide(run.data, run, dataset)
        assert len(restricted.classes) == (len(run.classes) or 10)
        assert len(split.labeled) == (asked.labels or len(dataset.train))
        assert run.unlabeled in (None, len(split.unlabeled))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_is_small_and_complete(name):
    experiment = EXPERIMENTS[name]
    assert len({cell.run.key for cell in experiment.cells("smoke")}) <= 40
    for cell in experiment.cells("smoke"):
        assert cell.run.data.startswith("digits")
        assert cell.run.steps <= 3
        assert cell.run.batch <= 10
        assert cell.run.to_dict()["model"] == {**cell.run.to_dict()["model"], "name": "small-conv", "widths": [4]}


def test_own_data_lie_under_the_data_root(monkeypatch, tmp_path):
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path))
    run = make_run(EXPERIMENTS["table3"].plans["laptop"].runs["Ours", "Tiny-ImageNet-20@10% top-1"], seed=4)
    assert DataSpec.parse(run.data).path == Path(tmp_path) / "tiny-imagenet-20"
    assert (DataSpec.parse(run.data).share, run.seed) == (10.0, 4)


def test_an_unknown_experiment_is_refused_with_the_nearest_name():
    assert find_experiment("table1", EXPERIMENTS) is EXPERIMENTS["table1"]
    with pytest.raises(InputError, match="Did you mean 'table1'"):
        find_experiment("tabel1", EXPERIMENTS)
