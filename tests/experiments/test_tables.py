"""Outcomes as tables: the right numbers in the right places, missing ones shown as missing, every format read back."""

import csv
import dataclasses
import io
import math

import numpy as np
import pytest
from rich.console import Console

from semigrad.experiments import Column, Experiment, Plan
from semigrad.experiments.sheets import MISSING, agreements, caption, entries, moment, sheets
from semigrad.experiments.store import Outcome, Record
from semigrad.experiments.tables import CSV_FIELDS, comma_separated, latex, markdown, plain, to_plain

ROWS = ("Labeled-Only", "Pi|Model_1", "50% & more", "A", "B", "C")
CIFAR10, SVHN = Column("CIFAR-10", "40"), Column("SVHN", "20")
COLUMNS = (CIFAR10, SVHN)
DRAWS = np.random.default_rng(0)


def experiment(rows=ROWS, columns=COLUMNS, **changes) -> Experiment:
    runs = {(row, column): {"data": "digits@40", "method": "supervised"} for row in rows for column in columns}
    known = {
        "name": "small", "title": "Ours & *theirs*", "claim": "Better.", "kind": "table", "rows": rows,
        "published": {(row, columns[0].name): 10.0 - number for number, row in enumerate(rows)},
        "plans": {"smoke": Plan.of(3, runs, ("A note with an_underscore.",))},
    }  # fmt: skip
    return Experiment(**{**known, **changes})


def record(error, seconds=2.0, features=None) -> Record:
    result = {"error": error, "error_top5": error / 10}
    data = {"title": "digits", "train": 1297, "test": 500}
    return Record("k", {}, data, {"seconds": seconds, "date": "2026-01-02"}, result, [], features)


def outcome(made=None, left_out=(("B", "SVHN@20"),), seconds=None) -> Outcome:
    made = made or experiment()
    records = {
        (row, column): {
            seed: record(20 - 2 * number + 0.1 * seed**2, (seconds or {}).get(row, [2.0, 2.0, 2.0])[seed])
            for seed in range(3)
        }
        for number, row in enumerate(made.rows)
        for column in made.columns("smoke")
        if (row, column) not in left_out
    }
    return Outcome(made, "smoke", records, "semigrad reproduce small", "2026-01-02")


def entry(made, row, column):
    (found,) = [entry for entry in entries(made) if (entry.row, entry.column) == (row, column)]
    return found


def test_numbers_of_a_cell():
    found = entry(outcome(seconds={"A": [9.0, 4.0, 5.0]}), "A", "CIFAR-10@40")
    errors = [14.0, 14.1, 14.4]
    assert found.summary.mean == pytest.approx(np.mean(errors))
    assert found.summary.deviation == pytest.approx(np.std(errors, ddof=1))
    assert found.difference.mean == pytest.approx(-6)
    assert found.difference.half == pytest.approx(0, abs=1e-9)
    assert (found.published, found.seconds, found.times) == (7.0, 5.0, 2.5)


def test_the_baseline_has_no_difference_to_itself():
    assert entry(outcome(), "Labeled-Only", "SVHN@20").difference is None


def test_missing_cells_are_shown_as_missing():
    sheet = next(sheet for sheet in sheets(outcome()) if sheet.title == "SVHN@20")
    by_row = {row[0]: row for row in sheet.rows}
    assert by_row["B"][1:4] == (MISSING, "", "")
    assert by_row["A"][1] == "14.17 ± 0.21"
    assert "| B | missing |" in markdown(outcome())


def test_another_figure_than_the_error():
    made = experiment(columns=(CIFAR10, dataclasses.replace(SVHN, measure="error_top5")))
    assert entry(outcome(made), "A", "SVHN@20").summary.mean == pytest.approx(1.41667, abs=1e-4)
    assert next(sheet for sheet in sheets(outcome(made)) if sheet.title == "SVHN@20").headings[1].startswith("top-5")


def test_order_of_rows_against_the_papers():
    found = agreements(outcome())
    assert found["CIFAR-10@40", "CIFAR-10@40"].tau == pytest.approx(1)
    assert found["SVHN@20", "CIFAR-10@40"].rows == 5  # the paper has no such column, and one of ours is missing
    few = experiment(rows=("A", "B", "C", "D"))
    assert agreements(outcome(few)) == {}
    without = agreements(outcome(), without=("A",))
    assert without.keys() <= found.keys()
    assert all(agreed.rows == found[place].rows - 1 for place, agreed in without.items())


def test_a_column_the_paper_lacks_stands_beside_all_of_its_columns():
    sheet = next(sheet for sheet in sheets(outcome()) if sheet.title == "SVHN@20")
    assert "paper, CIFAR-10@40" in sheet.headings
    place = sheet.headings.index("paper, CIFAR-10@40")
    assert {row[0]: row[place] for row in sheet.rows}["A"] == "7.00"


def test_a_column_is_not_compared_with_another_condition():
    words = ("without mixup", "with mixup")
    columns = tuple(Column("digits", "20", condition=word) for word in words)
    theirs = tuple(Column("SVHN", "1000", condition=word) for word in words)
    published = {(row, column.name): 5.0 for row in ROWS for column in theirs}
    plans = {**experiment(columns=columns).plans, "paper": experiment(columns=theirs).plans["smoke"]}
    found = sheets(outcome(experiment(columns=columns, published=published, plans=plans), left_out=()))
    assert [sheet.headings[4] for sheet in found] == ["paper, SVHN@1000 without mixup", "paper, SVHN@1000 with mixup"]
    assert {len(sheet.headings) for sheet in found} == {7}


def test_a_row_that_only_the_paper_has():
    made = experiment(published={("Nobody", "SVHN@20"): 3.0}, rows=(*ROWS, "Nobody"))
    made = Experiment(**{**vars(made), "plans": experiment().plans})
    found = entry(outcome(made, left_out=[("Nobody", column.name) for column in COLUMNS]), "Nobody", "SVHN@20")
    assert (found.planned, found.ours, found.published) == (False, "–", 3.0)


def cells_of(text, title):
    """A table of a Markdown page, read back."""
    lines = text.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    plain_bars = [row.replace("\\|", "\0") for row in rows]
    return [[cell.strip().replace("\0", "|") for cell in row.strip("|").split("|")] for row in plain_bars]


def test_markdown_has_one_width_and_escaped_names():
    text = markdown(outcome())
    headings, rule, *rows = cells_of(text, "CIFAR-10@40")
    assert {len(row) for row in (headings, rule, *rows)} == {7}
    assert [row[0] for row in rows] == ["Labeled-Only", "Pi|Model\\_1", "50% & more", "A", "B", "C"]
    assert text.startswith("# Ours & \\*theirs\\*\n")
    assert "- A note with an\\_underscore.\n" in text
    assert "semigrad reproduce small" in text


def test_comma_separated_values_read_back_in_full_precision():
    rows = list(csv.DictReader(io.StringIO(comma_separated(outcome()))))
    assert tuple(rows[0]) == (*CSV_FIELDS, "published_CIFAR-10@40")
    assert len(rows) == 12
    by_place = {(row["row"], row["column"]): row for row in rows}
    found = by_place["Pi|Model_1", "SVHN@20"]
    assert float(found["mean"]) == entry(outcome(), "Pi|Model_1", "SVHN@20").summary.mean
    assert (by_place["B", "SVHN@20"]["mean"], by_place["B", "SVHN@20"]["seeds"]) == ("", "0")
    assert "nan" not in comma_separated(outcome())
    beside = {place: row["published_CIFAR-10@40"] for place, row in by_place.items()}
    assert (beside["A", "SVHN@20"], beside["A", "CIFAR-10@40"]) == ("7.0", "")  # there it stands in `published`


def test_what_pages_and_markdown_say_of_features_is_in_the_comma_separated_values():
    made = features_outcome()
    first, second = csv.DictReader(io.StringIO(comma_separated(made)))
    assert float(second["energy_labeled_test"]) == pytest.approx(0.6)
    assert float(second["energy_labeled_test_deviation"]) == pytest.approx(0.7071, abs=1e-4)
    assert float(second["energy_unlabeled_test_by_chance"]) == 0.25
    assert (second["silhouette"], first["energy_labeled_test"]) == ("", "")


def test_dates_are_written_for_people():
    assert moment("2026-11-16T03:59:28+00:00") == "2026-11-16 03:59 UTC"
    assert moment("2026-11-16T03:59:28+02:00") == "2026-11-16 01:59 UTC"
    assert moment("2026-11-16") == "2026-11-16"
    made = dataclasses.replace(outcome(), date="2026-11-16T03:59:28+00:00")
    for text in (markdown(made), latex(made)):
        assert "newest run of 2026-11-16 03:59 UTC" in text


def test_a_baseline_that_is_not_there_leaves_no_empty_columns():
    made = outcome(left_out=[("Labeled-Only", "SVHN@20")])
    headings = {sheet.title: sheet.headings for sheet in sheets(made)}
    assert headings["SVHN@20"] == ("method", "test error, %", "seeds", "paper, CIFAR-10@40", "seconds")
    assert headings["CIFAR-10@40"][3] == "difference to Labeled-Only"
    by_labels = outcome(experiment(kind="labels"), left_out=[("Labeled-Only", "SVHN@20")])
    assert "SVHN: difference to Labeled-Only" not in [sheet.title for sheet in sheets(by_labels)]


def test_what_is_said_of_seeds_is_true():
    made = outcome()
    assert caption(made).startswith("Mean ± standard deviation over seeds")
    few = {place: {0: records[0]} for place, records in made.records.items()}
    assert caption(dataclasses.replace(made, records=few)).startswith("One seed")


def test_cells_keep_the_numbers_that_they_say():
    cells = {row[0].text: row for row in sheets(outcome())[0].cells}
    errors = [14.0, 14.1, 14.4]
    assert [cell.text for cell in cells["A"][1:5]] == ["14.17 ± 0.21", "3", "-6.00 ± 0.00", "7.00"]
    assert [cell.value for cell in cells["A"][1:5]] == pytest.approx([np.mean(errors), 3, -6, 7])
    by_labels = sheets(outcome(experiment(kind="labels"), left_out=[("A", "CIFAR-10@40")]))[0]
    values = {row[0].text: row[1].value for row in by_labels.cells}
    assert values["B"] == pytest.approx(np.mean([12.0, 12.1, 12.4]))
    assert (values["A"], by_labels.cells[3][1].text) == (None, "missing; paper 7.00")


def test_seconds_have_three_digits_and_no_exponent():
    made = outcome(seconds={"A": [1234.5] * 3, "B": [0.271] * 3})
    by_row = {row[0]: row[-2] for row in sheets(made)[0].rows}
    assert (by_row["A"], by_row["B"]) == ("1234", "0.271")


def test_latex_escapes_and_has_one_width():
    text = latex(outcome())
    assert r"50\% \& more" in text
    assert r"Pi\textbar{}Model\_1" in text
    assert r"Ours \& *theirs*" in text
    assert "$-$6.00" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in rows} == {6}
    assert text.count(r"\begin{tabular}{lrrrrrr}") == 2


def test_latex_fits_the_page_and_says_what_its_numbers_mean():
    text = latex(outcome())
    assert r"\usepackage{booktabs,graphicx}" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count(r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%") == 2
    assert text.count(r"Mean $\pm$ standard deviation over seeds") == 2


def shown(made):
    console = Console(width=160, record=True, file=io.StringIO())
    for table in plain(made):
        console.print(table)
    return console.export_text()


def test_terminal_tables_show_names_with_brackets_as_they_are():
    made = experiment(rows=("[bold]x[/bold]", *ROWS[1:]))
    assert "[bold]x[/bold]" in shown(outcome(made))


def test_rows_by_numbers_of_labels():
    made = experiment(columns=(SVHN, Column("SVHN", "40"), CIFAR10), kind="labels")
    found = {sheet.title: sheet for sheet in sheets(outcome(made, left_out=[("A", "SVHN@40")]))}
    errors = found["SVHN: test error, % (seeds)"]
    assert errors.headings == ("method", "20 labels", "40 labels")
    by_row = {row[0]: row[1:] for row in errors.rows}
    assert by_row["A"] == ("14.17 ± 0.21 (3); paper 7.00", MISSING)
    assert "CIFAR-10: difference to Labeled-Only" in found
    assert "CIFAR-10: median seconds of a run" in found


def features_outcome():
    made = experiment(rows=("Labeled-Only", "Ours"), columns=(SVHN,), kind="features")
    pairs = ("labeled-unlabeled", "labeled-test", "unlabeled-test")

    def features(number):
        return {
            "energy": {pair: {"share": number, "share_by_chance": 0.25} for pair in pairs},
            "silhouette": {"mean": None, "by_class": {"0": number, "1": -number} if number < 1 else {"0": number}},
            "classes": ["cat", "dog"],
        }

    records = {("Ours", "SVHN@20"): {seed: record(5.0, features=features(0.1 + seed)) for seed in range(2)}}
    return Outcome(made, "smoke", records, "", "")


def test_features_have_a_table_of_their_own():
    sheet, by_class = sheets(features_outcome())[-2:]
    assert (by_class.title, by_class.headings) == ("SVHN@20: silhouette of each class", ("method", "cat", "dog"))
    assert by_class.rows == (("Ours", "0.6000 ± 0.7071", "-0.1000"),)
    assert sheet.headings[:4] == (
        "method", "data", "energy labeled-unlabeled", "energy labeled-unlabeled by chance",
    )  # fmt: skip
    assert sheet.rows[1] == ("Ours", "SVHN@20", *(["0.6000 ± 0.7071", "0.2500 ± 0.0000"] * 3), MISSING)
    assert sheet.rows[0][2:] == (MISSING,) * 7


def test_data_that_are_not_whole_are_noted():
    made = outcome()
    part = {"title": "svhn, 20,000 of 73,257", "train": 20_000, "official": 73_257, "test": 5000}
    old = {"title": "mine, 1 of 2", "train": 20_000, "test": 5000}  # from before it was known
    whole = {**part, "title": "svhn", "train": 73_257}
    own = {**part, "title": "one of mine", "official": None}
    every = enumerate((whole, part, old, own))
    records = {("A", "SVHN@20"): {seed: dataclasses.replace(record(5.0), data=data) for seed, data in every}}
    assert made.notes == ("A note with an_underscore.",)
    found = dataclasses.replace(made, records=records)
    assert found.notes[1:] == ("Trained on a part of the data: svhn, 20,000 of 73,257; tested on 5,000 examples.",)
    assert "svhn, 20,000 of 73,257" in markdown(found)


def test_one_seed_has_neither_deviation_nor_interval():
    made = experiment()
    few = {place: {0: records[0]} for place, records in outcome().records.items()}
    found = entry(Outcome(made, "smoke", few, "", ""), "A", "SVHN@20")
    assert (str(found.summary), str(found.difference)) == ("14.00", "-6.00")
    assert math.isnan(found.difference.half)


def test_plain_values_name_every_run():
    content = to_plain(outcome())
    assert len(content["cells"]) == 11
    cell = next(cell for cell in content["cells"] if (cell["row"], cell["column"]) == ("A", "CIFAR-10@40"))
    assert cell["published"] == 7.0
    assert cell["runs"]["2"] == {"key": "k", "error": pytest.approx(14.4), "seconds": 2.0}


def with_errors(**errors: list[float]) -> Outcome:
    """One column, a row for each name, the errors of seeds 0, 1, ..."""
    made = experiment(tuple(errors), (SVHN,), contrasts=(("new", "old"),), published={})
    records = {
        (row, SVHN.name): {seed: record(error) for seed, error in enumerate(values)} for row, values in errors.items()
    }
    return Outcome(made, "smoke", records, "", "")


@pytest.mark.parametrize(
    ("new", "old", "shown", "verdict"),
    [
        ([5.0, 6.0, 7.0], [7.0, 8.1, 9.2], "-2.10 ± 0.25", "holds"),
        ([7.0, 8.1, 9.2], [5.0, 6.0, 7.0], "+2.10 ± 0.25", "the opposite holds"),
        ([5.0, 6.0, 7.0], [4.0, 7.0, 9.0], "-0.67 ± 3.79", "undecided"),
        ([5.0], [7.0], "-2.00", "one seed"),
    ],
)
def test_a_claim_is_judged_by_the_interval_of_its_paired_difference(new, old, shown, verdict):
    (claims,) = [sheet for sheet in sheets(with_errors(old=old, new=new)) if sheet.title == "Claims"]
    assert claims.rows == (("new below old", "SVHN@20", shown, str(len(new)), verdict),)


def test_a_claim_about_rows_that_are_not_there_is_not_made():
    assert [sheet.title for sheet in sheets(with_errors(old=[3.0], other=[4.0]))] == ["SVHN@20"]
