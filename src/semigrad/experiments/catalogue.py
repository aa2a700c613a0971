"""The paper's tables and figures, and what goes beyond them, each as one value."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from semigrad.experiments import published
from semigrad.experiments.experiment import Experiment, Place, Plan, Scale, by_name
from semigrad.experiments.published import CIFAR10, IMAGE_SETS, LABELED_ONLY, OURS, SVHN, rows_of
from semigrad.experiments.realistic import REALISTIC
from semigrad.experiments.scales import laptop, overnight, paper, smoke
from semigrad.experiments.scales.miniature import FIXMATCH, META_MATCH, NO_META_STEP, STRONG, steps_of
from semigrad.settings.recipes import Layer

_MODULES: dict[Scale, ModuleType] = {"smoke": smoke, "laptop": laptop, "overnight": overnight, "paper": paper}
_ADA_NET_NOTE = (
    "The paper prints ADA-Net with mixup as 8.87 (CIFAR-10) and 5.90 (SVHN) in Table 5, and as 10.30 and 4.62 in "
    "Table 1, whose row with fastSWA is 8.72."
)
_META_NOTE = "The paper prints meta without mixup on SVHN as 3.68 in Table 4 and as 3.86 in Table 5."
_FIGURE_NOTE = "The paper's figure comes without numbers."
_CURVE_NOTE = "The test part is read on the way for the curves of figure-accuracy; nothing is selected on it."


def _plans(name: str) -> dict[Scale, Plan]:
    """The plans that each scale's module makes under one name."""
    return {scale: getattr(module, name)() for scale, module in _MODULES.items()}


def _ablation(named: dict[str, Layer]) -> dict[Scale, Plan]:
    return {
        "smoke": smoke.ablation(named),
        "laptop": laptop.ablation(named),
        "overnight": overnight.ablation(named),
        "paper": paper.variants(named),
    }


TABLE1 = Experiment(
    name="table1",
    title="Every method of the comparison (in the paper: Conv-Large on SVHN, CIFAR-10 and CIFAR-100)",
    claim="The meta-gradient performs favorably against the previous approaches on all three data sets.",
    kind="table",
    rows=rows_of(published.TABLE1),
    published=by_name(published.TABLE1),
    plans=_plans("table1"),
    notes=(
        "Labeled-Only is printed in the paper's Table 4.",
        _ADA_NET_NOTE,
        "The published figures of other rows are their authors', made with other networks, inputs and label sets.",
    ),
)

TABLE2 = Experiment(
    name="table2",
    title="fastSWA and ours over numbers of labels (in the paper: shake-shake on CIFAR)",
    claim="The method performs favorably with another network too, and with fewer labels.",
    kind="table",
    rows=("fastSWA", OURS),
    published=by_name(published.TABLE2),
    plans=_plans("table2"),
)

TABLE3 = Experiment(
    name="table3",
    title="Pictures with 10 % of their labels (in the paper: ResNet-18 on ImageNet)",
    claim="The method performs well against ADA-Net, above all in top-5 error.",
    kind="table",
    rows=rows_of(published.TABLE3),
    published=by_name(published.TABLE3),
    plans=_plans("table3"),
    notes=(_CURVE_NOTE,),
)

TABLE4 = Experiment(
    name="table4",
    title="Ablation: meta-learning and mixup, each on and off",
    claim="Both components improve on the baseline, and meta-learning still does in the presence of mixup.",
    kind="table",
    rows=rows_of(published.TABLE4),
    published=by_name(published.TABLE4),
    plans=_plans("table4"),
    notes=(_META_NOTE,),
    contrasts=(
        (published.META, LABELED_ONLY),
        (published.MIXUP, LABELED_ONLY),
        (published.BOTH, LABELED_ONLY),
        (published.BOTH, published.MIXUP),
        (published.BOTH, published.META),
        (published.BOTH, NO_META_STEP),
        (META_MATCH, LABELED_ONLY),
        (META_MATCH, STRONG),
        (META_MATCH, published.BOTH),
    ),
)

TABLE5 = Experiment(
    name="table5",
    title="ADA-Net and ours, with and without mixup",
    claim="The method outperforms ADA-Net with mixup and without.",
    kind="table",
    rows=("ADA-Net", OURS),
    published=by_name(published.TABLE5),
    plans=_plans("table5"),
    notes=(_META_NOTE, _ADA_NET_NOTE),
    contrasts=((OURS, "ADA-Net"),),
)

FIGURE_ACCURACY = Experiment(
    name="figure-accuracy",
    title="Training and test accuracy over time (in the paper: ImageNet with 10 % of its labels)",
    claim=(
        "With labels alone the network overfits: training accuracy is high and test accuracy low. The method's "
        "training accuracy is not higher, and its test accuracy is better."
    ),
    kind="curves",
    rows=(LABELED_ONLY, OURS),
    published={},
    plans=_plans("figure_accuracy"),
    notes=(_FIGURE_NOTE, _CURVE_NOTE),
)

FIGURE_LABELS = Experiment(
    name="figure-labels",
    title="Error against the number of labels",
    claim="The baseline degrades heavily when labels are taken away; the method keeps a relatively high accuracy.",
    kind="labels",
    rows=(LABELED_ONLY, OURS),
    published=by_name(
        {(row, column): published.TABLE1[row, column] for row in (LABELED_ONLY, OURS) for column in (SVHN, CIFAR10)}
    ),
    plans=_plans("figure_labels"),
    notes=(_FIGURE_NOTE, "Those shown at 1,000 labels of SVHN and 4,000 of CIFAR-10 stand in its Tables 1 and 4."),
)

FIGURE_FEATURES = Experiment(
    name="figure-features",
    title="Features of labeled, unlabeled and test examples",
    claim=(
        "The baseline's features of labeled and unlabeled examples are distributed differently; with the method less "
        "so, and the classes of unlabeled and test examples are separated more clearly."
    ),
    kind="features",
    rows=(LABELED_ONLY, OURS),
    published={},
    plans=_plans("figure_features"),
    notes=(_FIGURE_NOTE,),
)

_BETAS: dict[str, Layer] = {"beta 0": {"beta": 0.0}, "beta lr": {"beta": "lr"}, "beta 1": {"beta": 1.0}}
_OPERATORS: dict[str, Layer] = {
    name: {"operator": name} for name in ("finite-difference", "forward-mode", "unrolled", "lookahead")
}

_CHEAPER: dict[str, Layer] = {
    "whole": {},
    "lookahead": {"operator": "lookahead"},
    "1/4 of the labels": {"meta_labeled": 0.25},
    "last 3 layers": {"meta_layers": 3},
    "every 4th step": {"meta_every": 4},
    "all of these": {"operator": "lookahead", "meta_labeled": 0.25, "meta_layers": 3, "meta_every": 4},
}


def _same_as(row: str) -> dict[Place, float]:
    """The published figures of the baseline, and those of our row under another name."""
    names = {LABELED_ONLY: LABELED_ONLY, row: OURS}
    return by_name(
        {(name, column): published.TABLE1[of, column] for name, of in names.items() for column in IMAGE_SETS}
    )


ABLATION_BETA = Experiment(
    name="ablation-beta",
    title="The meta learning rate: none, the learning rate, and ten times its peak throughout",
    claim="Beyond the paper, which always sets the meta learning rate to the learning rate.",
    kind="table",
    rows=(LABELED_ONLY, *_BETAS),
    published=_same_as("beta lr"),
    plans=_ablation(_BETAS),
    notes=("With beta 0 the pseudo-labels are the network's own predictions; consistency and mixup stay.",),
    beyond=True,
)

ABLATION_OPERATOR = Experiment(
    name="ablation-operator",
    title="Four ways to compute the meta-gradient",
    claim="Beyond the paper, which uses finite differences; exact operators should make no difference in error.",
    kind="table",
    rows=(LABELED_ONLY, *_OPERATORS),
    published=_same_as("finite-difference"),
    plans=_ablation(_OPERATORS),
    notes=("forward-mode and unrolled compute the same numbers up to rounding: their difference is noise.",),
    beyond=True,
)

ABLATION_CHEAPER = Experiment(
    name="ablation-cheaper",
    title="Meta-gradients that cost less: from some of the labels, along some of the layers, at some of the steps",
    claim="Beyond the paper: how much of the meta-gradient is needed for its error.",
    kind="table",
    rows=(LABELED_ONLY, *_CHEAPER),
    published=_same_as("whole"),
    plans=_ablation(_CHEAPER),
    notes=("At the steps without a meta-gradient the pseudo-labels are the network's own predictions.",),
    beyond=True,
)

ABLATION_STEPS = Experiment(
    name="ablation-steps",
    title="Meta-learning and mixup, each on and off, in shorter and longer training",
    claim="Beyond the paper: what is gained over labels alone depends on how long all rows are trained.",
    kind="table",
    rows=rows_of(published.TABLE4),
    published=by_name(
        {
            (row, replace(column, condition=steps_of(400_000))): figure
            for (row, column), figure in published.TABLE4.items()
            if column == CIFAR10
        }
    ),
    plans=_plans("ablation_steps"),
    contrasts=(*TABLE4.contrasts[:5], (FIXMATCH, LABELED_ONLY)),
    beyond=True,
)

_HOSTS = {
    "MixMatch": "mixmatch",
    "ReMixMatch": "remixmatch",
    "FixMatch": "fixmatch",
    "MT": "mean-teacher",
    "TE": "temporal-ensembling",
}
_PLUGIN_ROWS = ("without meta", "with meta")

META_PLUGIN = Experiment(
    name="meta-plugin",
    title="Other methods with their pseudo-labels improved by the meta-gradient, and without",
    claim="Beyond the paper: its meta-learning is orthogonal to other methods and improves them.",
    kind="table",
    rows=_PLUGIN_ROWS,
    published={},
    plans={
        "smoke": smoke.meta_plugin(_HOSTS, _PLUGIN_ROWS),
        "laptop": laptop.meta_plugin(_HOSTS, _PLUGIN_ROWS),
        "overnight": overnight.meta_plugin(_HOSTS, _PLUGIN_ROWS),
        "paper": paper.meta_plugin(_HOSTS, _PLUGIN_ROWS),
    },
    notes=(
        "Unpublished: a paragraph that the authors left out of their paper has 6.24 for MixMatch (its own authors' "
        "figure) and 6.02 for MixMatch with meta, with WRN-28 on CIFAR-10 with 4,000 labels. There is no code for it.",
        "MixMatch, ReMixMatch and FixMatch have WRN-28-2 at the scale of the paper, MT and TE Conv-Large.",
    ),
    beyond=True,
)


def _with_notes(experiment: Experiment) -> Experiment:
    """With what is to be known of the published figures beside ours, where there are any."""
    own = (published.BEST_OF_TEST,) if experiment.published else ()
    return replace(experiment, notes=(*experiment.notes, *own))


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: _with_notes(experiment)
    for experiment in (
        TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, FIGURE_ACCURACY, FIGURE_LABELS, FIGURE_FEATURES,
        ABLATION_BETA, ABLATION_OPERATOR, ABLATION_CHEAPER, ABLATION_STEPS, META_PLUGIN,
        REALISTIC,
    )
}  # fmt: skip
