"""Every method, every named composition and the variants of the paper's obey the laws."""

import pytest
from benchmarks.methods import COMPOSITIONS as NAMED

from semigrad.methods import METHODS, MetaGradient
from semigrad.models import CompactConv
from semigrad.run import configure
from tests.methods import laws

COMPOSITIONS = (*NAMED, "temporal-ensembling+sntg")
CASES = {
    **{name: cls() for name, cls in METHODS.items()},
    **{name: configure("digits@40", method=name).method for name in COMPOSITIONS},
    "meta only": MetaGradient(mixup=False),
    "mixup only": MetaGradient(meta=False),
    "beta 0": MetaGradient(beta=0.0),
    "algorithm 1": MetaGradient(mixup=False, labeled_term=False),
    "train mode": MetaGradient(mode="train"),
    "clean labels beside mixed ones": MetaGradient(clean=1.0),
    "strong views": MetaGradient(mixup=False, strong=True),
    "strong labeled examples": MetaGradient(mixup=False, strong_labeled=True),
    **{f"by {name}": MetaGradient(operator=name) for name in ("unrolled", "finite-difference", "lookahead")},
    "ada-net without mixup": configure("digits@40", method={"name": "ada-net", "mixup": False}).method,
    "fixmatch in two passes": configure("digits@40", method={"name": "fixmatch", "joint": False}).method,
    "co-training of 3": configure("digits@40", method={"name": "co-training", "networks": 3}).method,
}

# The labeled rows go through the network together with others, or are mixed with them: the tests of these methods say
# which reduction holds instead (λ = 1, α → 0, two passes).
NO_LABELED_PASS = {
    "meta-gradient", "mixup only", "beta 0", "algorithm 1", "train mode", "by unrolled", "by finite-difference",
    "by lookahead", "clean labels beside mixed ones", "meta-match", "ada-net", "ada-net+fast-swa", "mixmatch",
    "mixmatch+meta", "remixmatch", "fixmatch", "fixmatch+meta",
}  # fmt: skip
# Rows are shuffled over the whole pool and paired by place.
PAIRED_BY_PLACE = {name for name in CASES if "mixmatch" in name or "sntg" in name}

EXCEPTIONS = {
    (laws.without_unlabeled_weight_it_is_supervised, name) for name in NO_LABELED_PASS
} | {(laws.the_order_of_the_batch_changes_nothing, name) for name in PAIRED_BY_PLACE}  # fmt: skip
EXCEPTIONS |= {(laws.the_order_of_the_batch_changes_nothing, "beta 0")}  # without dropout its consistency is 0
PAIRS = [(law, name) for name in CASES for law in laws.LAWS if (law, name) not in EXCEPTIONS]


@pytest.mark.parametrize(("law", "name"), PAIRS, ids=[f"{name}: {law.__name__}" for law, name in PAIRS])
def test_law(law, name):
    law(laws.unconditional(CASES[name]))


def test_every_exception_is_of_a_case_that_exists():
    assert {name for _, name in EXCEPTIONS} <= CASES.keys()


def compact(classes, shape, drop, norm=False):
    """The default network of natural images, small; it always has BatchNorm."""
    return CompactConv(widths=(6, laws.WIDTH), drop=drop).build(laws.task(classes, shape))


NOT_ON_PICTURES = (
    laws.without_unlabeled_weight_it_is_supervised,  # unlabeled rows that go along change the batch's statistics
    laws.the_scales_of_features_do_not_matter,  # pictures have no features
)
ON_PICTURES = [(law, name) for law, name in PAIRS if law not in NOT_ON_PICTURES]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "name"), ON_PICTURES, ids=[f"{name}: {law.__name__}" for law, name in ON_PICTURES])
def test_law_on_the_network_of_natural_images(law, name, monkeypatch):
    monkeypatch.setattr(laws, "Plain", compact)
    monkeypatch.setattr(laws, "shape_for", lambda method: (1, 16, 16))
    law(laws.unconditional(CASES[name]))
