"""What `choices.py fields` tries for each row: settings of the row's own fields, written down beforehand, four on
digits and three on natural images.

Labeled-only has no fields of its own, so that there is nothing to try."""

from __future__ import annotations

from typing import Any

Candidates = dict[str, list[dict[str, Any]]]

DIGITS: Candidates = {
    "entropy-minimization": [{}, {"weight": 0.3}, {"weight": 0.1}, {"ramp": 0.4}],
    "pseudo-label": [{}, {"weight": 0.3}, {"threshold": 0.9}, {"threshold": 0.8, "ramp": 0.2}],
    "pi-model": [{}, {"weight": 3.0}, {"weight": 10.0}, {"weight": 3.0, "ramp": 0.4}],
    "temporal-ensembling": [{}, {"weight": 3.0}, {"weight": 10.0}, {"weight": 3.0, "decay": 0.9}],
    "mean-teacher": [{}, {"weight": 3.0}, {"weight": 10.0}, {"weight": 3.0, "horizon": 0.02}],
    "vat": [{}, {"epsilon": 0.5}, {"epsilon": 2.0}, {"epsilon": 3.0}],
    "vadd": [{}, {"delta": 0.2}, {"distance": "squared", "weight": 3.0}, {"delta": 0.1, "entropy": 0.3}],
    "tnar": [
        {},
        {"entropy": 0.1},
        {"tangent": 2.0, "normal": 1.0},
        {"tangent": 0.5, "normal": 0.25, "entropy": 0.3},
    ],
    "ma-dnn": [{}, {"weight": 0.3}, {"weight": 0.1}, {"weight": 0.3, "ramp": 0.4}],
    "co-training": [{}, {"agreement": 3.0}, {"agreement": 1.0}, {"epsilon": 0.05}],
    "dual-student": [
        {},
        {"stabilization": 10.0},
        {"stabilization": 3.0, "threshold": 0.6},
        {"stability": 3.0, "stabilization": 10.0, "threshold": 0.6},
    ],
    "ada-net": [{}, {"weight": 0.3}, {"weight": 0.1}, {"weigh_by_lambda": False}],
    "meta-gradient": [{}, {"weight": 3.0}, {"weight": 0.3}, {"gamma": 0.5}],
    "meta-semi": [{}, {"weight": 3.0}, {"rule": "proportional"}, {"horizon": 0.02}],
    "mixmatch": [{}, {"weight": 2.5}, {"weight": 25.0}, {"alpha": 0.3}],
    "remixmatch": [{}, {"weight": 0.5}, {"rotation": 0.1}, {"copies": 4}],
    "fixmatch": [
        {"threshold": 0.95},
        {"threshold": 0.8},
        {"threshold": 0.9, "weight": 0.5},
        {"threshold": 0.8, "ramp": 0.2},
    ],
    "pi-model+sntg": [
        {"weight": 3.0},
        {"weight": 10.0},
        {"weight": 3.0, "sntg": {"weight": 0.1}},
        {"weight": 3.0, "sntg": {"weight": 1.0}},
    ],
    "mean-teacher+sntg": [
        {"weight": 3.0},
        {"weight": 10.0},
        {"weight": 3.0, "sntg": {"weight": 0.1}},
        {"weight": 3.0, "sntg": {"weight": 1.0}},
    ],
    "mean-teacher+swa": [
        {"weight": 3.0},
        {"weight": 10.0},
        {"weight": 3.0, "swa": {"start": 0.8, "period": 0.9}},
        {"weight": 3.0, "swa": {"start": 0.4, "period": 0.5}},
    ],
    "mean-teacher+fast-swa": [
        {"weight": 3.0},
        {"weight": 10.0},
        {"weight": 3.0, "fast-swa": {"start": 0.8, "period": 0.9}},
        {"weight": 3.0, "fast-swa": {"start": 0.4, "period": 0.5}},
    ],
    "mean-teacher+meta": [
        {"weight": 3.0},
        {"weight": 10.0},
        {"weight": 3.0, "meta": {"beta": 0.01}},
        {"weight": 3.0, "meta": {"beta": 0.5}},
    ],
    "vat+ent": [{}, {"ent": {"weight": 0.3}}, {"epsilon": 2.0}, {"epsilon": 2.0, "ent": {"weight": 0.3}}],
    "vat+ent+sntg": [
        {},
        {"ent": {"weight": 0.3}},
        {"epsilon": 2.0},
        {"epsilon": 2.0, "ent": {"weight": 0.3}, "sntg": {"weight": 0.1}},
    ],
    "vat+vadd": [{}, {"epsilon": 2.0}, {"vadd": {"delta": 0.2}}, {"vadd": {"weight": 0.3}}],
    "ada-net+fast-swa": [
        {},
        {"weight": 0.3},
        {"weight": 0.1},
        {"weight": 0.3, "fast-swa": {"start": 0.8, "period": 0.9}},
    ],
    "mixmatch+meta": [{}, {"weight": 2.5}, {"weight": 25.0}, {"meta": {"beta": 0.01}}],
    "fixmatch+meta": [
        {"threshold": 0.95},
        {"threshold": 0.8},
        {"threshold": 0.9, "weight": 0.5},
        {"threshold": 0.8, "meta": {"beta": 0.01}},
    ],
}

IMAGES: Candidates = {
    "pi-model": [{}, {"weight": 3.0}, {"weight": 10.0}],
    "temporal-ensembling": [{}, {"weight": 3.0}, {"weight": 10.0}],
    "mean-teacher": [{}, {"weight": 3.0}, {"weight": 10.0}],
    "mean-teacher+sntg": [{}, {"weight": 3.0}, {"weight": 10.0}],
    "vat": [{}, {"epsilon": 2.5}, {"epsilon": 5.0}],
    "vat+ent": [{}, {"epsilon": 2.5}, {"ent": {"weight": 0.3}}],
    "vat+ent+sntg": [{}, {"epsilon": 2.5}, {"ent": {"weight": 0.3}}],
    "vat+vadd": [{}, {"epsilon": 2.5}, {"vadd": {"weight": 0.3}}],
    "ma-dnn": [{}, {"weight": 0.3}, {"weight": 0.1}],
    "co-training": [{}, {"agreement": 3.0}, {"agreement": 1.0}],
    "mean-teacher+fast-swa": [{}, {"weight": 3.0}, {"weight": 10.0}],
    "tnar": [{}, {"entropy": 0.3}, {"tangent": 2.0, "normal": 1.0}],
    "ada-net": [{}, {"weight": 0.3}, {"gamma": 0.05}],
    "ada-net+fast-swa": [{}, {"weight": 0.3}, {"gamma": 0.05}],
    "dual-student": [{}, {"stabilization": 10.0}, {"stabilization": 10.0, "threshold": 0.6}],
    "meta-gradient": [{}, {"weight": 10.0}, {"weight": 10.0, "gamma": 0.05}],
    "mixmatch": [{}, {"weight": 2.5}, {"weight": 25.0}],
    "fixmatch": [{"threshold": 0.95}, {"threshold": 0.8}, {"threshold": 0.95, "weight": 0.5}],
}

_META_ONLY: dict[str, Any] = {"name": "meta-gradient", "mixup": False}
_CLEAN_AND_STRONG: dict[str, Any] = {"name": "meta-gradient", "clean": 1.0, "strong": True}

BEYOND: dict[str, dict[str, Any]] = {
    "labeled-only": {"method": "supervised"},
    "labeled-only + strong augmentation": {"method": {"name": "supervised", "strong": True}},
    "the paper's": {"method": "meta-gradient"},
    "clean labels beside mixed ones": {"method": {"name": "meta-gradient", "clean": 1.0}},
    "a ramp": {"method": {"name": "meta-gradient", "ramp": 0.4}},
    "beta 1": {"method": {"name": "meta-gradient", "beta": 1.0}},
    "lookahead": {"method": {"name": "meta-gradient", "operator": "lookahead"}},
    "an average of the weights": {"method": "meta-gradient", "average": 0.99},
    "no mixup": {"method": _META_ONLY},
    "no mixup + beta 1": {"method": {**_META_ONLY, "beta": 1.0}},
    "no mixup + twice the unlabeled batch": {"method": _META_ONLY, "unlabeled_batch": 128},
    "no mixup + entropy": {"method": {**_META_ONLY, "name": "meta-gradient+ent", "ent": {"weight": 0.3}}},
    "no mixup + strong views": {"method": {**_META_ONLY, "strong": True}},
    "no mixup + strong views + weight 3": {"method": {**_META_ONLY, "strong": True, "weight": 3.0}},
    "clean labels + strong views": {"method": _CLEAN_AND_STRONG},
    "clean labels + strong views + beta 0": {"method": {**_CLEAN_AND_STRONG, "beta": 0.0}},
    "clean labels + strong views + weight 3": {"method": {**_CLEAN_AND_STRONG, "weight": 3.0}},
    "clean labels + strong views + weight 0": {"method": {**_CLEAN_AND_STRONG, "weight": 0.0}},
    "clean labels + strong views + gamma 0.1": {"method": {**_CLEAN_AND_STRONG, "gamma": 0.1}},
    "clean labels + strong views + gamma 1": {"method": {**_CLEAN_AND_STRONG, "gamma": 1.0}},
    "clean labels + strong views + gamma 0.1 + weight 3": {
        "method": {**_CLEAN_AND_STRONG, "gamma": 0.1, "weight": 3.0}
    },
    "strong labels beside mixed ones + strong views": {"method": {**_CLEAN_AND_STRONG, "strong_labeled": True}},
    "strong labels beside mixed ones + strong views + weight 3": {
        "method": {**_CLEAN_AND_STRONG, "strong_labeled": True, "weight": 3.0}
    },
    "no mixup + strong labels + strong views": {"method": {**_META_ONLY, "strong": True, "strong_labeled": True}},
    "no mixup + strong labels + strong views + weight 3": {
        "method": {**_META_ONLY, "strong": True, "strong_labeled": True, "weight": 3.0}
    },
    "Mean Teacher": {"method": "mean-teacher"},
    "Mean Teacher with meta": {"method": "mean-teacher+meta"},
    "VAT+Ent": {"method": {"name": "vat+ent", "epsilon": 2.5}},
    "FixMatch": {"method": {"name": "fixmatch", "threshold": 0.95}},
    "FixMatch + threshold 0.8": {"method": {"name": "fixmatch", "threshold": 0.8}},
    "FixMatch + threshold 0.8 + with meta": {"method": {"name": "fixmatch+meta", "threshold": 0.8}},
    "FixMatch + threshold 0.8 + entropy": {
        "method": {"name": "fixmatch+ent", "threshold": 0.8, "ent": {"weight": 0.3}}
    },
}
"""What `choices.py beyond` tries on natural images: changes to the paper's method, and other methods beside it."""
