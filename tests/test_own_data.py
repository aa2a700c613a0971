"""`benchmarks/own_data.py`: its files are what a user has, its records are kept, its page is what they say."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.own_data import AUTO, FIT, KEPT, MAKERS, THEIRS, Options, beside_the_best, main, page

from semigrad.data import open_dataset
from semigrad.data.pictures import find
from semigrad.errors import InputError
from semigrad.fitting.looking import look_at


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "photos"])
def test_most_labels_are_taken_away(name, tmp_path):
    given = MAKERS[name](tmp_path, 0)
    look = look_at(str(given.path))
    rows, labels, new = given.arrays
    assert (look.labeled, look.unlabeled) == ((labels >= 0).sum(), (labels < 0).sum())
    assert look.labeled == pytest.approx(0.1 * len(rows), abs=1)
    assert sorted(look.dataset.classes) == sorted(given.names)
    if name != "digits":  # of which the file has images
        np.testing.assert_array_equal(look.dataset.train.values, rows.astype(np.float32))
    assert len(new) == len(given.truth)
    assert look.dataset.test is None
    assert (MAKERS[name](tmp_path, 1).arrays[1] != labels).any()


@pytest.mark.data
def test_a_folder_of_real_pictures(real_data, tmp_path):
    given = MAKERS["photos"](tmp_path, 0)
    look = look_at(str(given.path))
    assert look.labels.tolist() == [10] * 5
    assert look.unlabeled == 500
    assert len(given.arrays[2]) == len(given.truth) == 250
    assert set(given.truth) == set(given.names)
    asked = [Path(file).parent.name for file in find(given.new)[0]]  # as predict goes through a folder
    data = open_dataset("folder", given.new)
    assert asked == given.truth == [data.classes[label] for label in data.labels.tolist()]


def test_what_is_on_record_is_not_measured_again(tmp_path, capsys):
    options = Options(data=("wine",), rows=THEIRS, seeds=2, kept=tmp_path / "own.json")
    assert main(options) == 0
    records = json.loads((tmp_path / "own.json").read_text())
    assert len(records) == 2 * len(THEIRS)
    assert all(0 <= record["error"] < 50 for record in records.values())
    capsys.readouterr()
    assert main(options) == 0
    assert json.loads((tmp_path / "own.json").read_text()) == records
    assert "% wrong" not in capsys.readouterr().out
    told = (tmp_path / "own.md").read_text()
    errors = [record["error"] for record in records.values() if record["row"] == THEIRS[1]]
    assert f"| {THEIRS[1]} | {np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f} |" in told


def test_a_short_look_is_not_averaged_with_what_is_on_record(tmp_path):
    record = {"data": "wine", "seed": 0, "row": FIT, "budget": "2m", "error": 5.0}
    (tmp_path / "own.json").write_text(json.dumps({"wine, seed 0, semigrad fit, 2m": record}))
    with pytest.raises(InputError, match=r"own\.json has runs of fit that were given 2m.*with --kept"):
        main(Options(data=("wine",), seeds=1, steps=20, kept=tmp_path / "own.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["own.json"]


def test_what_is_not_known_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        main(Options(data=("wine", "beer"), rows=("fit",), kept=tmp_path / "own.json"))
    assert ["no data set 'beer'" in caught.value.problems[0], "no row 'fit'" in caught.value.problems[1]] == [True] * 2
    with pytest.raises(InputError, match=r"is not there. Leave it out with --data wine,breast_cancer,digits\.$"):
        main(Options(kept=tmp_path / "own.json"))
    assert list(tmp_path.iterdir()) == []


def test_the_page_says_where_others_are_better():
    errors = {
        ("wine", FIT): [4.0, 6.0], ("wine", THEIRS[0]): [9.0, 9.0], ("wine", THEIRS[3]): [3.0, 4.0],
        ("digits", FIT): [5.0, 5.0], ("digits", THEIRS[1]): [7.0, 7.0], ("digits", THEIRS[2]): [0.0],
    }  # fmt: skip
    records = [
        {"data": data, "row": row, "seed": seed, "error": error}
        for (data, row), found in errors.items()
        for seed, error in enumerate(found)
    ]
    assert beside_the_best(records) == [
        f"- wine: `semigrad fit` makes more mistakes than {THEIRS[3]}, +1.50 ± 6.35 points over 2 seeds, which is not "
        "told apart",
        f"- digits: `semigrad fit` makes fewer mistakes than {THEIRS[1]}, -2.00 ± 0.00 points over 2 seeds",
    ]
    assert beside_the_best([record for record in records if record["row"] != FIT]) == []
    several = [record if record["row"] != FIT else {**record, "row": AUTO} for record in records]
    more = "makes more mistakes than"
    assert beside_the_best([record for record in several if record["seed"] == 0]) == [
        f"- wine: `{AUTO}` {more} {THEIRS[3]}, +1.00 points with 1 seed, which is not told apart",
        f"- digits: `{AUTO}` {more} {THEIRS[2]}, +5.00 points with 1 seed, which is not told apart",
    ]


def test_a_page_of_one_seed_and_one_row_says_nothing_of_others():
    shared = {"data": "wine", "seed": 0, "budget": "5 steps", "error": 5.0}
    facts = dict.fromkeys(("seconds", "processor", "predict_seconds", "export_seconds", "export_difference"), 1.0)
    record = {**shared, "row": FIT, **facts, "verdicts": {}, "chosen": "vat", "steps": 5, "code": "abc"}
    told = page([record])
    assert "from own-data.json: 1 seed; `fit` was given 5 steps." in told
    assert "get 16 x 16 pixels. Code abc." in told
    assert "(took vat, 5 steps): Nothing was compared." in told
    compared = {"verdicts": {"vat": "It helped."}, "held_out_errors": {"supervised": 20.0, "vat": 12.5}}
    told = page([{**record, **compared, "chosen": "supervised"}])
    assert "(took labeled-only, 5 steps): vat 12.5 % wrong, labeled-only 20.0 %. It helped." in told
    assert "Beside the best" not in told
    assert "| semigrad fit | 5.00 |" in told


@pytest.mark.skipif(not KEPT.exists(), reason="nothing is on record yet")
def test_the_page_is_what_the_records_give():
    records = json.loads(Path(KEPT).read_text())
    assert KEPT.with_suffix(".md").read_text() == page(list(records.values()))
