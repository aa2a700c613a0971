"""What is done where nothing is said: by what the data are, not by what they are called."""

import numpy as np
import pytest
from PIL import Image

from semigrad.data import SOURCES, outline_of
from semigrad.data.dataset import UNSEEN, Dataset, Outline
from semigrad.data.opening import open_data
from semigrad.errors import InputError
from semigrad.methods import VAT, FixMatch, MetaMatch
from semigrad.run import configure
from semigrad.settings.recipes import steps_for


def test_steps_grow_with_the_data_and_shrink_with_the_size_of_a_picture():
    small, color, large = (1, 8, 8), (3, 32, 32), (3, 64, 64)
    assert [steps_for(small, rows) for rows in (20, 1297, 2000, 10**6)] == [800, 800, 1200, 2000]
    assert [steps_for(color, rows) for rows in (20, 2000, 50_000)] == [800, 1200, 2000]
    assert [steps_for(large, rows) for rows in (20, 2000, 50_000)] == [800, 1000, 1000]
    assert [steps_for((30,), rows) for rows in (20, 2000, 50_000)] == [800, 1200, 2000]
    assert (steps_for(color, None), steps_for(None, None)) == (2000, 2000)


def outline_read(name):
    dataset = open_data(name, configure(name))
    return Outline(dataset.train.shape, dataset.official or len(dataset.train))


def test_the_outline_of_digits_is_that_of_their_data():
    assert SOURCES["digits"].outline == outline_read("digits")


@pytest.mark.data
@pytest.mark.parametrize("name", ["cifar10", "cifar100", "svhn"])
def test_the_outline_of_a_named_source_is_that_of_its_data(name, real_data):
    assert SOURCES[name].outline == outline_read(name)


def write_table(path, rows, write):
    path.mkdir(exist_ok=True)
    write(path / "train", rows)
    write(path / "unlabeled", 3 * rows)
    write(path / "test", 5 * rows)


def write_csv(path, rows):
    path.with_suffix(".csv").write_text("a,b,label\n" + "".join(f"{i},{-i},{i % 2}\n" for i in range(rows)))


def write_parquet(path, rows):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": np.arange(rows), "label": np.arange(rows) % 2})
    frame.to_parquet(path.with_suffix(".parquet"))


@pytest.mark.parametrize(("ending", "write"), [("csv", write_csv), ("parquet", write_parquet)])
def test_rows_of_tables_are_counted_without_those_of_the_test_part(ending, write, tmp_path):
    write_table(tmp_path / "folder", 500, write)
    assert outline_of(ending, tmp_path / "folder") == Outline((1,), 2000)
    assert outline_of(ending, tmp_path / "folder" / f"train.{ending}") == Outline((1,), 500)
    assert configure(f"{ending}:{tmp_path / 'folder'}").steps == 1200
    (tmp_path / f"broken.{ending}").write_bytes(b"PAR1 and nothing else")
    assert outline_of(ending, tmp_path / f"broken.{ending}").shape == (1,)


def test_pictures_and_arrays_are_counted(tmp_path):
    for number in range(4):
        file = tmp_path / "pictures" / ("test" if number == 3 else "train") / "ab"[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20)).save(file)
    assert outline_of("folder", tmp_path / "pictures").rows == 3
    np.savez(tmp_path / "x.npz", x=np.zeros((2000, 16, 16, 3), np.uint8), y=np.zeros(2000))
    assert outline_of("npz", tmp_path / "x.npz") == Outline((3, 16, 16), 2000)
    assert configure(f"npz:{tmp_path / 'x.npz'}").steps == 1200


def test_what_cannot_be_looked_at_is_left_for_reading_to_tell(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"rubbish")
    for name in ("npz", "folder"):
        assert outline_of(name, tmp_path / "x.npz") == outline_of(name, tmp_path / "none") == UNSEEN


def test_data_in_memory_go_by_their_own_size():
    x, y = np.random.default_rng(0).random((2000, 7)), np.arange(2000) % 2
    assert configure(Dataset.from_arrays(x, y)).steps == 1200


def test_fields_of_a_method_on_a_data_set_hold_where_it_is_named():
    """The paper mixes otherwise on SVHN; other methods that mix know nothing of it."""
    assert configure("svhn@1000", method="meta-match").method.gamma == 1.0
    assert configure("svhn@1000", method="meta-gradient").method.gamma == 0.1
    assert configure("svhn@1000", method="meta-gradient+fast-swa").method.host.gamma == 0.1
    assert configure("svhn@1000", method={"name": "meta-gradient", "gamma": 0.3}).method.gamma == 0.3
    assert configure("svhn@1000", recipe="algorithm-2").method.gamma == 0.1
    assert configure("cifar10@4000", method="meta-gradient").method.gamma == 1.0
    assert configure("svhn@1000", config={"methods": {"vat": {"epsilon": 3.0}}}, method="vat").method.epsilon == 3.0


def test_a_method_that_is_named_has_the_fields_that_its_kind_of_data_gives_it():
    """Whoever names the default gets the default; its class has what its paper has."""
    assert configure("svhn@1000", method="fixmatch") == configure("svhn@1000")
    assert configure("svhn@1000", method="fixmatch+meta").method.host == FixMatch(threshold=0.8)
    assert configure("svhn@1000", method={"name": "fixmatch", "threshold": 0.95}).method == FixMatch()
    assert configure("csv:none.csv", method="fixmatch").method == FixMatch()
    assert configure("csv:none.csv", method="vat+ent").method.host == VAT(epsilon=0.5)
    assert configure("csv:none.csv", method="meta-match").method == MetaMatch(beta=1.0)
    assert configure("csv:none.csv", method="meta-gradient").method.beta == 1.0
    assert configure("svhn@1000", method="meta-match").method == MetaMatch()
    assert configure("svhn@1000", recipe="fixmatch-svhn").method == FixMatch()


@pytest.mark.parametrize("odd", [5, {"vat": 3}, [{"vat": {}}]])
def test_fields_of_methods_are_tables(odd):
    with pytest.raises(InputError, match="methods"):
        configure("digits@40", config={"methods": odd})
