"""Every method by its name on the command line; a method is added with one file here and one line below."""

from __future__ import annotations

from semigrad.core import Method
from semigrad.methods.meta import Meta
from semigrad.methods.meta_gradient import MetaGradient
from semigrad.methods.supervised import Supervised

METHODS: dict[str, type[Method]] = {
    "supervised": Supervised,
    "meta-gradient": MetaGradient,
}

__all__ = ["METHODS", "Meta", "MetaGradient", "Supervised"]
