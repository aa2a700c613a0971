"""The estimator keeps scikit-learn's promises, and trains as a run does."""

import copy
import json
import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from semigrad import SemiSupervisedSplit
from semigrad.errors import InputError
from semigrad.folder.saved import load_model, load_run
from semigrad.methods import VAT, MeanTeacher
from semigrad.models import MLP
from tests.estimator.tables import pictures, quick, same_weights, weights, wine


def without_time(lines):
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.mark.parametrize("method", ["meta-gradient", "mean-teacher+fast-swa", "supervised"])
def test_memory_and_folder_give_the_same_bits(method, tmp_path, monkeypatch):
    X, y, _ = wine()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    memory = quick(method=method).fit(X, y)
    assert os.listdir() == []
    folder = quick(method=method, folder=tmp_path / "run").fit(X, y)
    assert same_weights(memory, folder)
    assert without_time(memory.history_) == without_time(folder.history_)
    assert np.array_equal(memory.predict_proba(X), folder.predict_proba(X))
    assert {"run.json", "metrics.jsonl", "checkpoints", "model.safetensors", "config.json", "result.json"} <= set(
        os.listdir(tmp_path / "run")
    )
    saved, classes = load_model(tmp_path / "run")
    assert classes == ("0", "1", "2")
    assert all(np.array_equal(value.numpy(), weights(memory)[name]) for name, value in saved.state_dict().items())
    assert load_run(tmp_path / "run").seed == 0


def test_a_folder_is_used_once_and_its_data_cannot_be_opened_again(tmp_path):
    from tests.small_runs import cli

    X, y, _ = wine()
    estimator = quick(folder=tmp_path / "run").fit(X, y)
    with pytest.raises(InputError, match=r"holds the run of one fit.*set_params\(folder=") as refused:
        estimator.fit(X, y)
    assert "--out" not in str(refused.value)
    assert same_weights(estimator.set_params(folder=tmp_path / "again").fit(X, y), quick().fit(X, y))
    assert cli("evaluate", tmp_path / "run") == 2


def test_the_folder_of_the_baseline_is_looked_at_before_anything_is_trained(tmp_path):
    X, y, _ = wine()
    (tmp_path / "run-labeled-only").mkdir()
    (tmp_path / "run-labeled-only" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="run-labeled-only' is not empty"):
        quick(folder=tmp_path / "run", baseline=True).fit(X, y)
    assert not (tmp_path / "run").exists()


def test_attributes():
    X, y, _ = wine()
    estimator = quick().fit(X, y)
    assert estimator.classes_.tolist() == [0, 1, 2]
    assert (estimator.n_features_in_, estimator.example_shape_, estimator.n_iter_) == (13, (13,), 6)
    assert [line["step"] for line in estimator.history_] == [1, 2, 3, 4, 5, 6]
    assert {"loss", "lr", "labeled", "adversarial"} <= estimator.history_[0].keys()
    known = y >= 0
    assert np.array_equal(estimator.transduction_[known], y[known])
    assert np.array_equal(estimator.transduction_[~known], estimator.predict(X)[~known])
    assert not np.array_equal(estimator.predict(X)[known], y[known])  # so few steps: the given labels stay nevertheless
    assert np.allclose(estimator.predict_proba(X).sum(1), 1)
    assert not hasattr(estimator, "baseline_")


def test_it_learns_from_rows_without_labels():
    """The unlabeled rows reach the weights, and a real table is learned."""
    X, y, truth = wine(0.3)
    estimator = quick(method="pseudo-label", steps=100).fit(X, y)
    assert estimator.score(X[y < 0], truth[y < 0]) > 0.9
    moved = X.copy()
    moved[y < 0] += X.std(0)
    frozen = {"method": "supervised", "steps": 3}
    assert not same_weights(
        quick(method="pseudo-label", steps=3).fit(X, y), quick(method="pseudo-label", steps=3).fit(moved, y)
    )
    alone, others = (quick(**frozen).fit(rows, y).network_.head.weight for rows in (X, moved))
    assert not torch.equal(alone, others)  # the statistics that normalize are of all rows


@pytest.mark.parametrize("given", [VAT(epsilon=2.0), {"name": "vat", "epsilon": 2.0}], ids=["object", "table"])
def test_ways_to_name_a_method(given):
    X, y, _ = wine()
    estimator = quick(method=given).fit(X, y)
    assert same_weights(estimator, quick(method=clone(estimator).method).fit(X, y))
    assert not same_weights(estimator, quick(method="vat").fit(X, y))
    assert same_weights(estimator, quick(method={"name": "vat", "epsilon": 2.0}).fit(X, y))


def test_a_method_without_a_name_is_trained():
    class Mine(MeanTeacher):
        pass

    X, y, _ = wine()
    assert same_weights(quick(method=Mine()).fit(X, y), quick(method="mean-teacher").fit(X, y))


@pytest.mark.parametrize(
    "given",
    [MLP(width=8, depth=1, batch_norm=False), {"name": "mlp", "width": 8, "depth": 1}],
    ids=["object", "table"],
)
def test_ways_to_name_a_network(given):
    X, y, _ = wine()
    estimator = quick(network=given).fit(X, y)
    assert weights(estimator)["head.weight"].shape == (3, 8)
    assert same_weights(estimator, quick(network={"name": "mlp", "width": 8, "depth": 1}).fit(X, y))


def test_a_network_by_its_name_has_the_fields_for_such_data():
    X, y, _ = wine()
    assert same_weights(quick(network="mlp").fit(X, y), quick().fit(X, y))
    assert not same_weights(quick(network=MLP()).fit(X, y), quick().fit(X, y))


def test_a_linear_network():
    X, y, _ = wine()
    assert weights(quick(network="linear").fit(X, y))["head.weight"].shape == (3, 13)


def own_network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("method", ["meta-gradient", "mean-teacher"])
def test_a_network_of_ones_own_is_copied(method, tmp_path):
    X, y, _ = wine()
    network = own_network()
    before = copy.deepcopy(network.state_dict())
    estimator = quick(network=network, method=method).fit((X - X.mean(0)) / X.std(0), y)
    assert estimator.network is network
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert network.training
    assert isinstance(estimator.network_, nn.Sequential)
    assert not torch.equal(estimator.network_[0].weight, network[0].weight)
    again = quick(network=network, method=method, folder=tmp_path / "run").fit((X - X.mean(0)) / X.std(0), y)
    assert same_weights(estimator, again)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (nn.Linear(5, 3), r"cannot take examples of shape \(13,\): mat1 and mat2"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(8, 3)), r"cannot take examples of shape \(13,\)"),
        (nn.Sequential(nn.LazyLinear(3)), "has lazy layers"),
    ],
    ids=["another width", "pictures", "lazy"],
)
def test_a_network_that_does_not_fit_is_refused_before_its_steps_are_counted(network, words):
    X, y, _ = wine()
    with pytest.raises(InputError, match=words):
        quick(network=network, steps="auto").fit(X, y)


def test_a_network_that_takes_no_single_example_has_steps_nevertheless():
    class Squeezing(nn.Linear):
        def forward(self, x):
            return super().forward(x[:, None].squeeze())

    X, y, _ = wine()
    assert quick(network=Squeezing(13, 3), steps="auto", batch=8, settings={"unlabeled_batch": 8}).fit(X, y).n_iter_ > 6


def test_random_state():
    X, y, _ = wine()
    fit = lambda state: quick(random_state=state).fit(X, y)  # noqa: E731
    assert same_weights(fit(3), fit(3))
    assert not same_weights(fit(3), fit(4))
    assert same_weights(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))
    source = np.random.RandomState(3)
    assert not same_weights(fit(source), fit(source))
    assert not same_weights(fit(None), fit(None))
    np.random.seed(0)  # noqa: NPY002 - what None draws from
    first = fit(None)
    np.random.seed(0)  # noqa: NPY002
    assert same_weights(first, fit(None))


def test_random_states_outside_stay():
    X, y, _ = wine()
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    quick().fit(X, y)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


def test_a_table_of_pandas():
    X, y, _ = wine()
    columns = [f"c{number}" for number in range(13)]
    frame = pd.DataFrame(X, columns=columns)
    estimator = quick().fit(frame, pd.Series(y))
    assert estimator.feature_names_in_.tolist() == columns
    assert np.array_equal(estimator.predict_proba(frame), quick().fit(X, y).predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame[columns[::-1]])


def with_texts(X):
    return pd.DataFrame(X[:, :3], columns=[*"abc"]).assign(kind=["red", "3.5"] * (len(X) // 2))


@pytest.mark.parametrize("kind", [str, object, "category", "string"])
def test_a_column_of_texts_is_named(kind):
    X, y, _ = wine()
    frame = with_texts(X).astype({"kind": kind})
    message = r"^X: the column 'kind' holds texts such as 'red', .* with OneHotEncoder in a pipeline\.$"
    with pytest.raises(InputError, match=message):
        quick().fit(frame, y)
    with pytest.raises(InputError, match=r"the column 3 holds texts such as 'red'"):
        quick().fit(frame.to_numpy(object), y)
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    assert make_pipeline(encoder, quick()).fit(frame, y).predict(frame).shape == (178,)


@pytest.mark.parametrize("times", [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"), pd.Timedelta(1)])
def test_a_column_of_times_is_named(times):
    X, y, _ = wine()
    with pytest.raises(InputError, match=r"^X: the column 'when' holds times, and rows are numbers here"):
        quick().fit(pd.DataFrame(X).rename(columns=str).assign(when=times), y)


def test_categories_that_are_numbers_are_numbers():
    X, y, _ = wine()
    frame = pd.DataFrame(X).assign(size=np.arange(178) % 4)
    categories = frame.astype({"size": "category"}).rename(columns=str)
    plain = frame.rename(columns=str)
    assert same_weights(quick().fit(categories, y), quick().fit(plain, y))


LAYOUTS = {
    "gray": lambda images: images,
    "channels last": lambda images: images[..., None],
    "channels first": lambda images: images[:, None],
    "floats": lambda images: images / 255,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_images(layout):
    images, y, _ = pictures()
    given = LAYOUTS[layout](images)
    estimator = quick().fit(given, y)
    assert (estimator.n_features_in_, estimator.example_shape_) == (64, (1, 8, 8))
    assert np.array_equal(estimator.predict_proba(given), quick().fit(images, y).predict_proba(images))


def test_what_is_not_like_the_training_rows_is_refused():
    images, y, _ = pictures()
    estimator = quick().fit(images, y)
    for other in (images[:, :7], images.reshape(-1, 64)):
        with pytest.raises(ValueError, match=r"fitted on examples of|expecting 64 features"):
            estimator.predict(other)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        quick().fit(images.astype(float), y)
    with pytest.raises(InputError, match="empty"):
        estimator.predict(images[:0])
    X, y, _ = wine()
    with pytest.raises(InputError, match="fitted on examples of"):
        quick().fit(X, y).predict(images)


def test_sparse_rows_are_refused():
    X, y, _ = wine()
    with pytest.raises(TypeError, match="dense data is required"):
        quick().fit(csr_array(X), y)


def test_a_feature_that_single_precision_cannot_tell_apart_is_named():
    X, y, _ = wine()
    X[:, 0] += 1.7e9
    with pytest.warns(UserWarning, match="single precision is too coarse for 1 of 13 features"):
        quick().fit(X, y)


@pytest.mark.parametrize("unlabeled_rows", [0, 1])
def test_where_all_or_all_but_one_are_labeled_the_labeled_rows_are_the_pool(unlabeled_rows):
    X, _, truth = wine()
    y = truth.copy()
    y[:unlabeled_rows] = -1
    estimator = quick(method="vat+ent", steps=60).fit(X, y)
    assert estimator.score(X, truth) > 0.9
    assert not same_weights(estimator, quick(method="supervised", steps=60).fit(X, y))


def test_the_baseline_is_labeled_only_training_under_the_same_budget(tmp_path):
    X, y, _ = wine()
    estimator = quick(baseline=True, folder=tmp_path / "run").fit(X, y)
    alone = quick(method="supervised").fit(X, y)
    assert same_weights(estimator.baseline_, alone)
    assert not same_weights(estimator, alone)
    record = json.loads((tmp_path / "run-labeled-only" / "run.json").read_text())
    assert record["run"]["method"]["name"] == "supervised"


def test_fit_changes_no_parameter():
    X, y, _ = wine()
    settings = {"optimizer": "sgd"}
    estimator = quick(settings=settings, method={"name": "vat"}, baseline=True)
    before = copy.deepcopy(estimator.get_params())
    estimator.fit(X, y)
    assert estimator.get_params() == before
    assert estimator.settings is settings


def test_numbers_of_numpy_are_numbers():
    """As grids of np.arange and np.logspace have them."""
    X, y, _ = wine()
    plain = quick(steps=3, lr=0.5, batch=8).fit(X, y)
    assert same_weights(plain, quick(steps=np.int64(3), lr=np.float32(0.5), batch=np.int16(8)).fit(X, y))
    with pytest.raises(InputError, match=r"steps takes a whole number; given: 2\.5"):
        quick(steps=np.float64(2.5)).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": {"data": "digits@40"}}, "settings has 'data': the data are X and y"),
        ({"settings": {"image_size": 8, "label": "y"}}, "settings has 'label'.*\n.*'image_size'"),
        ({"device": None}, "There is no device 'None' here. Use auto or cpu"),
        ({"folder": 3}, "folder takes a path, or None; given: 3"),
        ({"folder": ""}, "folder takes a path, or None; given: ''"),
        ({"folder": "a\0b"}, "folder takes a path"),
    ],
    ids=str,
)
def test_odd_parameters_are_one_sentence(changes, words):
    X, y, _ = wine()
    with pytest.raises(InputError, match=words):
        quick(**changes).fit(X, y)


def test_rows_are_taken_in_whatever_holds_them():
    X, y, _ = wine()
    X = X.astype(np.float32)
    plain, tensor = quick(), torch.tensor(X)
    plain.fit(X, y)
    assert same_weights(plain, quick(device=torch.device("cpu")).fit(tensor.clone().requires_grad_(), y))
    assert np.array_equal(plain.predict_proba(tensor.bfloat16()), plain.predict_proba(tensor.bfloat16().float()))
    assert same_weights(plain, quick().fit(np.ma.masked_array(X), y))
    masked = np.ma.masked_greater(X, 100.0)
    with pytest.raises(InputError, match=f"{(X > 100).sum():,} values are masked"):
        quick().fit(masked, y)
    wide = X.astype(np.float64)
    wide[2, 4] = 1e300
    with pytest.raises(InputError, match=r"X has 1 values beyond what single precision holds.*row 2; scale them down"):
        quick().fit(wide, y)


def test_tiny_numbers_are_named_without_warnings_of_numpy():
    X, y, _ = wine()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        quick().fit(X * 1e-300, y)
    said = [str(warning.message) for warning in heard if "jit" not in str(warning.message)]
    assert ["single precision is too coarse for 13 of 13 features" in text for text in said] == [True]


def test_settings_reach_the_run(tmp_path):
    X, y, _ = wine()
    options = {"lr": 0.02, "weight_decay": 0.5, "feature_noise": 0.3, "feature_mask": 0.1, "feature_dropout": 0.2}
    quick(**options, settings={"optimizer": "sgd", "nesterov": True}, folder=tmp_path / "run").fit(X, y)
    run = load_run(tmp_path / "run").to_dict()
    assert {name: run[name] for name in options} == options
    assert (run["optimizer"], run["nesterov"], run["batch"], run["include_labeled"]) == ("sgd", True, 16, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "vatt"}, "no method 'vatt'. Did you mean 'vat'"),
        ({"method": 3}, "method takes a name such as 'mean-teacher'"),
        ({"network": "resnet-18"}, "does not take rows of 13 features"),
        ({"network": None}, "network takes a name such as 'mlp'"),
        ({"network": nn.Linear(13, 4)}, "gives 4 logits an example, but the data have 3 classes"),
        ({"steps": "many"}, "steps takes a whole number; given: 'many'"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"lr": -1.0}, "lr must be positive"),
        ({"settings": {"speed": 3}}, "no setting 'speed'"),
        ({"device": "tape"}, "no device 'tape'"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"lr": 1e20, "settings": {"optimizer": "sgd"}}, "is not finite"),
    ],
)
def test_what_is_wrong_is_said(options, words):
    X, y, _ = wine()
    with pytest.raises(InputError, match=words):
        quick(**options).fit(X, y)


def test_pickle_and_clone():
    X, y, _ = wine()
    estimator = quick(method="mean-teacher+fast-swa").fit(X, y)
    loaded = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(loaded.predict_proba(X), estimator.predict_proba(X))
    assert not hasattr(clone(estimator), "network_")
    assert same_weights(clone(estimator).fit(X, y), estimator)


def test_in_a_pipeline_and_a_search():
    X, y, _ = wine()
    model = make_pipeline(StandardScaler(), quick(steps=30))
    grid = {"semisupervisedclassifier__method": ["supervised", "pseudo-label"]}
    search = GridSearchCV(model, grid, cv=SemiSupervisedSplit(2), error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 2
    assert search.best_score_ > 0.7
    assert search.best_estimator_.set_params(semisupervisedclassifier__steps=2).fit(X, y)[-1].n_iter_ == 2


@pytest.mark.slow
def test_in_several_processes():
    X, y, _ = wine()
    one, two = (cross_val_score(quick(steps=20), X, y, cv=SemiSupervisedSplit(3), n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("settings", [{"steps": 7}, {"method": "vat"}, {"seed": 9}, {"model": "mlp"}, [1]])
def test_settings_do_not_say_what_a_parameter_says(settings):
    X, y, _ = wine()
    with pytest.raises(ValueError, match="settings"):
        quick(settings=settings).fit(X, y)
