"""The estimator: a classifier after scikit-learn's conventions, trained as every run is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from semigrad.errors import InputError
from semigrad.estimator.answers import answer
from semigrad.estimator.comparison import compare
from semigrad.estimator.examples import as_dataset, read_examples
from semigrad.estimator.labels import read_labels, refuse_unlabeled
from semigrad.estimator.plan import carry_out, check_folder, make_plan
from semigrad.settings import Execution
from semigrad.training.progress import Quiet, for_this_terminal
from semigrad.training.verdict import LABELED_ONLY, Verdict

OF_THE_RUN = ("steps", "batch", "lr", "weight_decay", "feature_noise", "feature_dropout", "feature_mask")
"""Parameters that are settings of the run, under the same names; "auto" leaves them to `defaults`."""


class SemiSupervisedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from few labels and many unlabeled rows, with any of Semigrad's methods.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> some = y.copy()
    >>> some[::2] = -1  # these rows are unlabeled
    >>> model = SemiSupervisedClassifier(random_state=0, threads=1).fit(X, some)
    >>> model.score(X[::2], y[::2]) > 0.9
    True
    >>> model.predict_proba(X).shape, model.transduction_.shape
    ((178, 3), (178,))

    Rows of features are standardized by the network itself, so they need no scaler: by the mean and deviation of all
    training rows, labeled or not, whatever the method. Images are arrays (N, H, W), (N, H, W, C) or (N, C, H, W), uint8
    or floats in [0, 1], or a list of them. Labeled rows are in the unlabeled pool too, so that a method can be trained
    where every row has a label.

    Parameters
    ----------
    method : "auto", a name such as "mean-teacher+fast-swa", a table with `name` and fields, or a Method. "supervised"
        trains on the labeled rows alone. What is not said has the default for the kind of data, as in `semigrad train`.
    network : "auto", "linear", the name of a model, a table with `name` and fields, a Model, or any module of torch
        that ends in a linear layer; of a module a copy is trained.
    steps : optimizer steps; "auto" goes by the number of rows and the size of the network.
    unlabeled : what stands in y where there is no label: -1, another number, a text such as ""; with None or NaN only
        missing values (None, NaN, pandas' NA), so that numbers and texts are all labels. Other missing values are
        refused, and so is the text "nan" that numpy makes of one.
    batch, lr, weight_decay, feature_noise, feature_dropout, feature_mask : settings of the run; feature_... say how
        strongly views of feature arrays differ from the rows.
    settings : a table of any other settings of a run, such as {"optimizer": "sgd", "warmup": 0.1}.
    baseline : also train on the labeled rows alone under the same budget, as `baseline_`.
    device, threads : where to compute: "auto", "cpu", "cuda", ...; threads of the processor, None: one for
        rows of features; for images one or all, whichever is quicker just now, so that bits may differ.
    folder : a new folder for the run of one fit; a second fit needs another one. None: nothing is written.
    verbose : show progress on stderr.
    random_state : a whole number is the run's seed; None or a RandomState draw one.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_iter_ : as everywhere in scikit-learn.
    transduction_ : (rows,) labels of all training rows: the given ones, and answers for the others.
    history_ : the lines of metrics, a table each: step, loss, its terms, pseudo-labels, learning rate, seconds.
    network_ : the network that answers, on the processor; it takes float32 features, or images in [0, 1].
    example_shape_ : shape of one example, (features,) or (channels, height, width).
    baseline_ : the estimator that was trained on the labeled rows alone, with `baseline`.
    """

    def __init__(
        self,
        method: Any = "auto",
        network: Any = "auto",
        *,
        steps: Any = "auto",
        unlabeled: Any = -1,
        batch: Any = "auto",
        lr: Any = "auto",
        weight_decay: Any = "auto",
        feature_noise: Any = "auto",
        feature_dropout: Any = "auto",
        feature_mask: Any = "auto",
        settings: Any = None,
        baseline: bool = False,
        device: str = "auto",
        threads: int | None = None,
        folder: Any = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.network = network
        self.steps = steps
        self.unlabeled = unlabeled
        self.batch = batch
        self.lr = lr
        self.weight_decay = weight_decay
        self.feature_noise = feature_noise
        self.feature_dropout = feature_dropout
        self.feature_mask = feature_mask
        self.settings = settings
        self.baseline = baseline
        self.device = device
        self.threads = threads
        self.folder = folder
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SemiSupervisedClassifier:
        """Train on all rows, with a label or without."""
        values = read_examples(self, X, first=True)
        labels = read_labels(y, values, self.unlabeled)
        for folder in (self.folder, self._folder_of_labeled_only if self.baseline else None):
            check_folder(folder)
        dataset = as_dataset(values, labels)
        given = {**self._more_settings(), **{name: getattr(self, name) for name in OF_THE_RUN}}
        plan = make_plan(self.method, self.network, given, self.random_state, dataset)
        execution = Execution(device=str(self.device), threads=self.threads)
        trained = carry_out(plan, dataset, execution, self.folder, for_this_terminal() if self.verbose else Quiet())
        self.classes_ = labels.classes
        self.network_ = trained.net.cpu().eval()
        self.history_ = [dict(line) for line in trained.lines]
        self.n_iter_ = plan.run.steps
        answers = answer(self.network_, values, self.device).argmax(1)
        self.transduction_ = self.classes_[np.where(labels.known, labels.numbers, answers)]
        if self.baseline:
            self.baseline_ = self.labeled_only().set_params(random_state=plan.run.seed).fit(X, y)
        return self

    def _more_settings(self) -> dict[str, Any]:
        """Those in `settings`, none of which may say what a parameter of the estimator says."""
        if self.settings is None:
            return {}
        if not isinstance(self.settings, Mapping):
            raise InputError(f"settings takes a table of names and values; given: {self.settings!r}.")
        parameters = {*self.get_params(deep=False), "model", "seed"}
        if twice := sorted(map(str, self.settings.keys() & parameters)):
            words = {"model": "network", "seed": "random_state"}
            raise InputError([f"settings has {name!r}: give {words.get(name, name)}=... instead." for name in twice])
        if of_files := [name for name in ("data", "label", "image_size") if name in self.settings]:
            raise InputError([f"settings has {name!r}: the data are X and y. Leave it out." for name in of_files])
        return dict(self.settings)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows, classes) probabilities, in the order of `classes_`."""
        check_is_fitted(self)
        return answer(self.network_, read_examples(self, X, first=False), self.device)

    def predict(self, X: Any) -> np.ndarray:
        """(rows,) the most probable class of each row."""
        numbers = self.predict_proba(X).argmax(1)
        answers: np.ndarray = self.classes_[numbers]
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right answers; rows that are marked as unlabeled are refused."""
        refuse_unlabeled(y, self.unlabeled)
        return float(super().score(X, y, sample_weight))

    def compare(self, X: Any, y: Any, cv: Any = 5) -> Verdict:
        """Whether the unlabeled rows help: this estimator and the same one on labeled rows alone, under the same budget
        and fold by fold, measured on labeled rows that were held out. `cv` is a number of folds or a splitter.

        >>> from sklearn.datasets import load_wine
        >>> X, y = load_wine(return_X_y=True)
        >>> y[::3] = -1
        >>> model = SemiSupervisedClassifier("pseudo-label", random_state=0, threads=1)
        >>> print("Unlabeled:", model.compare(X, y, cv=2))  # doctest: +ELLIPSIS
        Unlabeled: ... % wrong, labeled-only ... %. ... points over 118 held-out labels (95 % interval).
        """
        return compare(self, X, y, cv)

    def labeled_only(self) -> SemiSupervisedClassifier:
        """The same estimator, untrained, that learns from the labeled rows alone. The mean and deviation by which rows
        are standardized are nevertheless those of all rows, as in the estimator that it is compared with."""
        other: SemiSupervisedClassifier = clone(self)
        other.set_params(method=LABELED_ONLY, baseline=False, folder=self._folder_of_labeled_only)
        return other

    @property
    def _folder_of_labeled_only(self) -> Path | None:
        return None if self.folder is None else Path(f"{self.folder}-labeled-only")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
