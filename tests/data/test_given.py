"""Data that are given from Python: arrays, DataFrames, torch data sets, data sets of the library `datasets`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Dataset as TorchDataset

import semigrad
from semigrad import Dataset, InputError, configure, train
from semigrad.data import open_dataset
from semigrad.data.given import word_for
from semigrad.data.tables import new_rows
from semigrad.folder.saved import load_form, load_model, load_run
from semigrad.settings import Execution

ALONE = Execution(threads=1, workers=0)
DIGITS = load_digits()
IMAGES = (DIGITS.images * 15.9375).astype(np.uint8)  # 16 is 255


def everything(data: Dataset) -> np.ndarray:
    return data.train.raw(np.arange(len(data.train))).numpy()


def hidden(labels: np.ndarray, every: int = 20) -> np.ndarray:
    return np.where(np.arange(len(labels)) % every == 0, labels, -1)


# --- arrays ---


def test_arrays_are_what_the_same_file_is(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"x": IMAGES[:900], "y": hidden(DIGITS.target[:900])}
    arrays |= {"x_test": IMAGES[900:], "y_test": DIGITS.target[900:]}
    np.savez(tmp_path / "a.npz", **arrays)
    assert Dataset.from_arrays(**arrays).fingerprint == open_dataset("npz", tmp_path / "a.npz").fingerprint


@pytest.mark.parametrize(
    ("y", "unlabeled", "labels", "classes"),
    [
        ([0, 1, -1, 1], -1, [0, 1, -1, 1], ("0", "1")),
        ([0, 1, 9, 1], 9, [0, 1, -1, 1], ("0", "1")),
        ([0.0, 1.0, np.nan, 1.0], np.nan, [0, 1, -1, 1], ("0", "1")),
        (["b", "a", "?", "a"], "?", [1, 0, -1, 0], ("a", "b")),
        (["b", "a", None, "a"], -1, [1, 0, -1, 0], ("a", "b")),
        (torch.tensor([0, 1, -1, 1]), -1, [0, 1, -1, 1], ("0", "1")),
        (np.array([0, 1, 255, 1], np.uint8), 255, [0, 1, -1, 1], ("0", "1")),
        (["b", "a", float("nan"), "a"], -1, [1, 0, -1, 0], ("a", "b")),
        (np.array(["b", "a", np.nan, "a"], object), -1, [1, 0, -1, 0], ("a", "b")),
        (np.array(["b", "a", "", "a"]), -1, [1, 0, -1, 0], ("a", "b")),
        (np.array(["b", "a", "nan", "a"]), "nan", [1, 0, -1, 0], ("a", "b")),
        (np.array(["b", "a", None, "a"], np.dtypes.StringDType(na_object=None)), -1, [1, 0, -1, 0], ("a", "b")),
        ([0, 1, None, 1], -1, [0, 1, -1, 1], ("0", "1")),
        (np.ma.masked_array([0, 1, 1, 1], [0, 0, 1, 0]), -1, [0, 1, -1, 1], ("0", "1")),
        (["b", "a", "9", "a"], 9, [1, 0, -1, 0], ("a", "b")),
        (np.array(["b", "a", "9", "a"]), 9, [1, 0, -1, 0], ("a", "b")),
        ([0, 1, 9, 1], "9", [0, 1, -1, 1], ("0", "1")),
        (np.array([0, 1, 9, 1], object), "9", [0, 1, -1, 1], ("0", "1")),
        ([True, False, None, False], -1, [1, 0, -1, 0], ("False", "True")),
        ([torch.tensor(0), torch.tensor(1), torch.tensor(-1), torch.tensor(1)], -1, [0, 1, -1, 1], ("0", "1")),
    ],
)
def test_what_means_unlabeled(y: Any, unlabeled: Any, labels: list[int], classes: tuple[str, ...]) -> None:
    data = Dataset.from_arrays(torch.eye(4, requires_grad=True), y, unlabeled=unlabeled)
    assert (data.labels.tolist(), data.classes) == (labels, classes)


def test_arrays_that_do_not_fit() -> None:
    for x, y, message in (
        (np.eye(3), [0, 1], r"x has the shape \(3, 3\) and y \(2,\)"),
        (np.eye(2), [0.5, 1.0], "labels must be whole numbers or strings"),
        (np.eye(2), np.array(["a", "nan"]), "the text 'nan', which a missing label becomes"),
        (np.eye(2), np.array(["a", "<NA>"]), "the text '<NA>', which a missing label becomes"),
        ([["a", "b"], ["c", "d"]], [0, 1], "x is <U1"),
    ):
        with pytest.raises(InputError, match=message):
            Dataset.from_arrays(x, y)


ROWS, LABELS = np.eye(4), [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": [[1, 2], [3], [4, 5], [6]]}, "^x cannot be read as an array: its rows are not all of one length"),
        ({"x": [torch.ones(3), torch.ones(2), torch.ones(3), torch.ones(3)]}, "^x cannot be .* not all of one length"),
        ({"x": [np.eye(2), np.eye(3), np.eye(2), np.eye(2)]}, "^x cannot be read .* not all of one length"),
        ({"y": [[0], [1, 2], [0], [1]]}, "^y cannot be read as an array: its rows are not all of one length"),
        ({"x_test": [[1], [1, 2]], "y_test": [0, 1]}, "^x_test cannot be read .* not all of one length"),
        ({"x_test": ROWS, "y_test": [[0], [1, 2], [0], [1]]}, "^y_test cannot be read .* not all of one length"),
        ({"x": torch.empty(4, 3, device="meta")}, "^x cannot be read as an array: .*meta"),
        ({"x": torch.eye(4).to_sparse()}, "^x cannot be read as an array: .*to_dense"),
        ({"x": csr_matrix(ROWS)}, r"^x holds the examples.*; given: a csr_matrix\. Give x\.toarray\(\)\.$"),
        ({"x": None}, "^x holds the examples, a row for each.*; given: a NoneType"),
        ({"x": (row for row in ROWS)}, "^x holds the examples.*; given: a generator"),
        ({"y": None}, "^y holds a label for each example.*; given: a NoneType"),
        ({"y": {"a": 1}}, "^y holds a label for each example.*; given: a dict"),
        ({"y": "abab"}, "^y holds a label for each example.*; given: a str"),
        ({"x": np.array([[1, "red"], [2, "red"]] * 2, object)}, "^x holds 'red' in row 0, which is no number. Categ"),
        ({"x": np.array([[1, None], [2, 3.0]] * 2, object)}, "^x has 2 values that are not finite.* first in row 0"),
        ({"y": [np.inf, 0, 1, 0]}, "^y float64: labels must be whole numbers"),
        ({"y": [10**30, 0, 1, 0]}, "^y float64: labels must be whole numbers"),
        ({"class_names": 3}, "^class_names holds a name for each class.*; given: an int"),
        ({"class_names": "ab"}, "^class_names holds a name for each class.*; given: a str"),
    ],
)
def test_what_is_no_array_is_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Dataset.from_arrays(**{"x": ROWS, "y": LABELS, **given})
    assert len(str(caught.value).splitlines()) == 1


def test_objects_that_are_numbers_are_numbers() -> None:
    plain, objects = (Dataset.from_arrays(x, LABELS, name="3") for x in (ROWS + 0.5, (ROWS + 0.5).astype(object)))
    assert plain.fingerprint == objects.fingerprint


def test_a_name_that_is_a_number_is_its_text() -> None:
    assert configure(Dataset.from_arrays(ROWS, LABELS, name=3)).data.startswith("memory:3-")


@pytest.mark.parametrize("marker", [[-1], {"a"}, {"a": 1}, np.array([-1, -2])], ids=str)
def test_one_thing_means_unlabeled(marker: Any) -> None:
    with pytest.raises(InputError, match="unlabeled takes one number or text, or None for what is missing; given: "):
        Dataset.from_arrays(np.eye(3), [0, 1, -1], unlabeled=marker)


@pytest.mark.parametrize("kind", ["string", "object", "category", "Int64", "float64", "boolean"])
def test_what_pandas_has_for_nothing_means_unlabeled(kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    first, second = {"Int64": (7, 10), "float64": (7.0, 10.0), "boolean": (False, True)}.get(kind, ("a", "b"))
    nothing = None if kind == "float64" else pandas.NA
    y = pandas.Series([second, nothing, first, None], dtype=kind)
    if kind in ("Int64", "float64"):
        y = y.replace({7: 0, 10: 1})
    data = Dataset.from_arrays(np.eye(4), y)
    assert data.labels.tolist() == [1, -1, 0, -1]
    assert data.classes == {"boolean": ("False", "True")}.get(kind, ("0", "1") if kind[-2:] == "64" else ("a", "b"))


# --- DataFrames ---


def test_a_frame_is_what_its_file_is(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = load_wine(as_frame=True).frame
    frame["region"] = pandas.Categorical(np.where(frame["alcohol"] > 13, "north", "south"))
    frame.loc[::7, "ash"] = np.nan
    frame["target"] = frame["target"].astype("Int64")
    frame.loc[::2, "target"] = pandas.NA
    frame.to_csv(tmp_path / "wine.csv", index=False)
    given, read = Dataset.from_frame(frame), open_dataset("csv", tmp_path / "wine.csv")
    np.testing.assert_array_equal(everything(given), everything(read))
    assert given.labels.tolist() == read.labels.tolist()
    assert given.columns == read.columns
    assert given.notes == read.notes


def test_a_frame_with_a_test_part_and_words() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2, 3], "kind": ["a", None, "b"], "sold": [True, False, True], "z": [*"uvu"]})
    data = Dataset.from_frame(frame, label="z", test=frame[:2])
    np.testing.assert_array_equal(everything(data), [[1, 1, 0, 0, 1], [2, 0, 0, 1, 0], [3, 0, 1, 0, 1]])
    assert data.test is not None
    np.testing.assert_array_equal(data.test.raw(np.arange(2)), everything(data)[:2])
    with pytest.raises(InputError, match="The DataFrame has no column of labels"):
        Dataset.from_frame(frame)
    with pytest.raises(InputError, match="from_frame takes DataFrames; given: a dict"):
        Dataset.from_frame({"x": [1]})
    with pytest.raises(InputError, match="The DataFrame has no rows"):
        Dataset.from_frame(frame[:0], label="z")


def test_decimals_are_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    prices = [Decimal("1.50"), Decimal(2), None, Decimal("-0.25")]
    plain = pandas.DataFrame({"price": [1.5, 2.0, np.nan, -0.25], "z": [*"uvuv"]})
    decimal = Dataset.from_frame(plain.assign(price=pandas.Series(prices, dtype=object)), label="z")
    assert decimal.columns == Dataset.from_frame(plain, label="z").columns
    assert [column.kind for column in decimal.columns.columns] == ["number"] if decimal.columns else False


def test_why_there_is_no_column() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"id": [f"user {row}" for row in range(300)], "day": pandas.date_range("2020", periods=300)}
    )
    with pytest.raises(
        InputError, match=r"no column of numbers .* in 'z' \(the column 'day' is left out: .*; the column 'id'"
    ):
        Dataset.from_frame(frame.assign(z=["u", "v"] * 150), label="z")


# --- torch ---


class Pictures(TorchDataset[Any]):
    """Digits as pictures, most of them unlabeled."""

    classes = [f"digit {number}" for number in range(10)]  # noqa: RUF012

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: int) -> Any:
        return Image.fromarray(self.images[position]), self.labels[position]


def test_pictures_of_a_torch_data_set() -> None:
    labels = hidden(DIGITS.target)
    data = Dataset.from_torch(Pictures(IMAGES[:900], labels[:900]), test=Pictures(IMAGES[900:], DIGITS.target[900:]))
    np.testing.assert_array_equal(everything(data), IMAGES[:900, None])
    assert data.labels.tolist() == labels[:900].tolist()
    assert data.classes[3] == "digit 3"
    assert data.test_labels is not None
    assert data.test_labels.tolist() == DIGITS.target[900:].tolist()
    assert data.notes == ()


def test_tensors_of_a_torch_data_set() -> None:
    images, labels = torch.tensor(DIGITS.images / 16).float()[:, None], torch.tensor(DIGITS.target)
    data = Dataset.from_torch(TensorDataset(images, labels))
    np.testing.assert_array_equal(everything(data), np.rint(DIGITS.images[:, None] / 16 * 255))
    assert data.labels.tolist() == DIGITS.target.tolist()
    rows = Dataset.from_torch(TensorDataset(torch.tensor(load_wine().data), torch.tensor(load_wine().target)))
    np.testing.assert_array_equal(everything(rows), load_wine().data.astype(np.float32))


def test_odd_pictures_are_said() -> None:
    class Odd(Pictures):
        def __getitem__(self, position: int) -> Any:
            picture, label = super().__getitem__(position)
            return (picture.resize((30, 20)).convert("RGB") if position == 7 else picture), label

    data = Dataset.from_torch(Odd(IMAGES[:100], DIGITS.target[:100]))
    assert data.train.shape == (3, 64, 64)
    assert data.notes == (
        "1 of 100 pictures are not 8 x 8: all are brought to 64 x 64",
        "1 of 100 pictures are in color, the others gray: all are read as color",
    )


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "The data set is empty"),
        ([np.eye(3)], r"gives a ndarray at position 0; expected \(image or array, label\)"),
        ([(np.eye(3), 0), (np.eye(4), 1)], r"2 different shapes \(\(3, 3\) and \(4, 4\)\). Bring them to one"),
        ([(np.eye(3), [1, 2])], r"the label at position 0 is \[1, 2\]"),
        ([(np.eye(3), [[1], [2, 3]])], "the label at position 0 cannot be read as an array"),
        ([([[1], [2, 3]], 0)], "An example cannot be read as an array: its rows are not all of one length"),
        ([(np.eye(3) * 3, 0), (np.eye(3), 1)], r"float images with 3 values outside \[0, 1\]"),
    ],
)
def test_torch_data_sets_that_do_not_fit(items: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Dataset.from_torch(items)


def test_what_has_no_positions() -> None:
    with pytest.raises(InputError, match="must have a length and"):
        Dataset.from_torch(iter([]))


# --- datasets ---


def test_pictures_that_datasets_saved(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=[*"abcdefghij"])})

    def part(start: int, end: int, labels: np.ndarray) -> Any:
        rows = {"image": [Image.fromarray(image) for image in IMAGES[start:end]], "label": labels[start:end].tolist()}
        return datasets.Dataset.from_dict(rows, features=features)

    parts = {"train": part(0, 60, hidden(DIGITS.target, 2)), "unlabeled": part(60, 80, DIGITS.target)}
    datasets.DatasetDict(**parts, test=part(80, 120, DIGITS.target)).save_to_disk(tmp_path / "saved")
    for data in (Dataset.from_huggingface(tmp_path / "saved"), Dataset.from_huggingface(str(tmp_path / "saved"))):
        np.testing.assert_array_equal(everything(data), IMAGES[:80, None])
        assert data.labels.tolist() == [*hidden(DIGITS.target, 2)[:60].tolist(), *[-1] * 20]
        assert data.classes == tuple("abcdefghij")
        assert data.test_labels is not None
        assert data.test_labels.tolist() == DIGITS.target[80:120].tolist()


def test_a_table_that_datasets_saved(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    kinds = {"x": datasets.Value("float64"), "size": datasets.ClassLabel(names=["small", "large"])}
    features = datasets.Features({**kinds, "kind": datasets.ClassLabel(names=["no", "yes"])})
    rows = {"x": [1.0, 2.0, None, 5.0], "size": [0, 1, 1, 0], "kind": [1, 0, -1, 1]}
    saved = datasets.Dataset.from_dict(rows, features=features)
    saved.save_to_disk(tmp_path / "saved")
    with pytest.raises(InputError, match="several columns that may hold labels"):
        Dataset.from_huggingface(tmp_path / "saved")
    data = Dataset.from_huggingface(saved, label="kind")
    assert data.classes == ("no", "yes")
    assert data.labels.tolist() == [1, 0, -1, 1]
    assert data.columns is not None
    assert data.columns.feature_names == ["x", "x is missing", "size=large", "size=small"]
    assert semigrad.configure(saved, label="kind").data == word_for(data)


def test_folders_that_datasets_did_not_save(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="save_to_disk"):
            Dataset.from_huggingface(path)


@pytest.mark.parametrize("given", [None, 3, [1, 2], {"train": None}, {"train": [1]}])
def test_what_datasets_did_not_make(given: Any) -> None:
    with pytest.raises(InputError, match=r"from_huggingface takes a folder .*save_to_disk.*; given: \w+\.$"):
        Dataset.from_huggingface(given)


def test_rows_that_are_streamed_cannot_be_taken_by_position() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": [1.0, 2.0], "label": [0, 1]}).to_iterable_dataset()
    with pytest.raises(InputError, match="given: IterableDataset"):
        Dataset.from_huggingface(rows)


# --- in the place of a text ---


def test_columns_that_are_called_by_numbers(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    wine = load_wine()
    frame = pandas.DataFrame(np.column_stack([wine.data[:, :4], wine.target]))
    result = train(frame, tmp_path / "run", label=4, method="supervised", steps=2, validation=30, execution=ALONE)
    assert result["validation"]["examples"] == 30
    run = load_run(tmp_path / "run")
    assert run.label == "4"
    assert run == configure(frame, label=4, method="supervised", steps=2, validation=30)
    for label in (5, ["a"], np.int64(7)):
        with pytest.raises(InputError, match=r"There is no column .* Known: 0, 1, 2, 3, 4"):
            configure(frame, label=label)
    with pytest.raises(InputError, match=r"label takes .*given: 4"):
        configure("csv:mine.csv", label=4)


def test_names_that_are_no_texts() -> None:
    for recipe in (4, [4]):
        with pytest.raises(InputError, match=r"There is no recipe .*4"):
            configure("digits@40", recipe=recipe)


def test_a_run_has_the_name_and_the_fingerprint_of_data_in_memory(tmp_path: Path) -> None:
    data = Dataset.from_arrays(IMAGES, DIGITS.target, name="my digits")
    run = configure(data, labels=40, method="supervised", steps=2)
    assert run.data == f"memory:my-digits-{data.fingerprint[:8]}@40"
    assert run.model_name == "small-conv"  # by the shape
    assert run.warmup == configure("npz:x.npz").warmup
    train(run, tmp_path / "run", dataset=data, execution=ALONE)
    assert load_run(str(tmp_path / "run")) == run
    assert len(load_model(str(tmp_path / "run"))[1]) == 10
    other = Dataset.from_arrays(IMAGES[::-1], DIGITS.target, name="my digits")
    assert configure(other, labels=40, method="supervised", steps=2).key != run.key
    with pytest.raises(InputError, match=r"is not what is given here, memory:my-digits-.*Configure a run"):
        train(run, tmp_path / "other", dataset=other)
    with pytest.raises(InputError, match=r"stood in memory when the run was made.*dataset="):
        train(run, tmp_path / "other")


def test_every_kind_of_data_in_one_line(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    cancer = load_breast_cancer(as_frame=True).frame
    wine = (load_wine().data, load_wine().target)
    given: dict[str, tuple[Any, str]] = {
        "text": ("digits", "small-conv"),
        "frame": (cancer, "mlp"),
        "torch": (Pictures(IMAGES, DIGITS.target), "small-conv"),
        "arrays": (wine, "mlp"),
        "data set": (Dataset.from_arrays(*wine), "mlp"),
    }
    for name, (data, model) in given.items():
        result = train(
            data, str(tmp_path / name), labels="10%", method="supervised", steps=2, validation=30, execution=ALONE
        )
        assert result["validation"]["examples"] == 30
        assert load_run(tmp_path / name).model_name == model
    assert load_form(tmp_path / "frame").columns is not None
    assert isinstance(cancer, pandas.DataFrame)


def test_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train("digits@40", method="supervised", steps=1, execution=ALONE)
    assert [path.name[:21] for path in (tmp_path / "runs").iterdir()] == ["digits@40_supervised_"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "Data are a text such as 'digits@40'.*given: an int"),
        (np.eye(3), r"Give examples with their labels: \(x, y\), -1 for unlabeled"),
        (torch.eye(3), r"Give examples with their labels"),
        (DataLoader(TensorDataset(torch.eye(3), torch.arange(3))), r"given: a DataLoader. Give the loader's .dataset"),
        (Path("table.csv"), "named by a text with their kind in front: 'csv:table.csv'"),
    ],
)
def test_what_are_no_data(given: Any, message: str) -> None:
    for function in (configure, train):
        with pytest.raises(InputError, match=message):
            function(given)


@pytest.mark.parametrize("out", [3, "", b"run"])
def test_a_folder_is_a_path(out: Any) -> None:
    with pytest.raises(InputError, match=r"^The folder of a new run is given by its path"):
        train("digits@40", out, steps=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"execution": "cpu"}, r"^execution takes an Execution, such as Execution\(device='cpu'\); given: a str\.$"),
        ({"network": "resnet-18"}, r"^network takes a torch module.* the setting model; given: a str\.$"),
        ({"progress": 3}, r"^progress takes an object with the functions of .*; given: an int\.$"),
    ],
)
def test_what_is_no_part_of_training_is_said_before_anything_is_written(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        train("digits@40", tmp_path / "run", steps=1, **given)
    assert not (tmp_path / "run").exists()


def test_settings_belong_to_configure() -> None:
    with pytest.raises(InputError, match="A run has its settings already: give labels, steps to configure"):
        train(configure("digits@40"), "nowhere", steps=3, labels=40)
    with pytest.raises(InputError, match="says already how many labels are used"):
        configure("digits@40", labels=40)
    assert configure("digits", labels="10%").data == "digits@10%"


def test_true_and_false_are_words_wherever_they_come_from(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"flag": [True, False] * 15, "a": range(30), "label": ["x", "y"] * 15})
    frame.to_csv(tmp_path / "t.csv", index=False)
    train, same = open_dataset("csv", tmp_path / "t.csv"), Dataset.from_frame(frame)
    assert train.columns == same.columns
    expected = new_rows(train.columns, tmp_path / "t.csv").features
    np.testing.assert_array_equal(new_rows(train.columns, frame).features, expected)
    np.testing.assert_array_equal(new_rows(train.columns, frame.to_dict("records")).features, expected)
    assert (expected[:, :2].sum(1) == 1).all()
