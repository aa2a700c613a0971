"""Every method by its name on the command line; a method is added with one file here and one line below.

`HOST+MODIFIER+...` is a modified method, read from left to right: `mean-teacher+fast-swa` is FastSWA(MeanTeacher())."""

from __future__ import annotations

from semigrad.core import Method, Modifier
from semigrad.methods.ada_net import AdaNet
from semigrad.methods.co_training import CoTraining
from semigrad.methods.dual_student import DualStudent
from semigrad.methods.entropy_minimization import Ent, EntropyMinimization
from semigrad.methods.fixmatch import FixMatch
from semigrad.methods.ma_dnn import MemoryAssisted
from semigrad.methods.mean_teacher import MeanTeacher
from semigrad.methods.meta import Meta
from semigrad.methods.meta_gradient import MetaGradient, MetaMatch
from semigrad.methods.meta_semi import MetaSemi
from semigrad.methods.mixmatch import MixMatch
from semigrad.methods.pi_model import PiModel
from semigrad.methods.pseudo_label import PseudoLabel
from semigrad.methods.remixmatch import ReMixMatch
from semigrad.methods.sntg import SNTG
from semigrad.methods.supervised import Supervised
from semigrad.methods.swa import SWA, FastSWA
from semigrad.methods.temporal_ensembling import TemporalEnsembling
from semigrad.methods.tnar import TNAR
from semigrad.methods.vadd import VAdD, VAdDTerm
from semigrad.methods.vat import VAT

METHODS: dict[str, type[Method]] = {
    "supervised": Supervised,
    "entropy-minimization": EntropyMinimization,
    "pseudo-label": PseudoLabel,
    "pi-model": PiModel,
    "temporal-ensembling": TemporalEnsembling,
    "mean-teacher": MeanTeacher,
    "vat": VAT,
    "vadd": VAdD,
    "tnar": TNAR,
    "ma-dnn": MemoryAssisted,
    "co-training": CoTraining,
    "dual-student": DualStudent,
    "ada-net": AdaNet,
    "meta-gradient": MetaGradient,
    "meta-match": MetaMatch,
    "meta-semi": MetaSemi,
    "mixmatch": MixMatch,
    "remixmatch": ReMixMatch,
    "fixmatch": FixMatch,
}

MODIFIERS: dict[str, type[Modifier]] = {
    "ent": Ent,
    "sntg": SNTG,
    "vadd": VAdDTerm,
    "swa": SWA,
    "fast-swa": FastSWA,
    "meta": Meta,
}


def parts(method: Method) -> tuple[Method, list[Modifier]]:
    """The innermost host, and its modifiers from the inside out."""
    if not isinstance(method, Modifier):
        return method, []
    host, modifiers = parts(method.host)
    return host, [*modifiers, method]


__all__ = [
    "METHODS",
    "MODIFIERS",
    "SNTG",
    "SWA",
    "TNAR",
    "VAT",
    "AdaNet",
    "CoTraining",
    "DualStudent",
    "Ent",
    "EntropyMinimization",
    "FastSWA",
    "FixMatch",
    "MeanTeacher",
    "MemoryAssisted",
    "Meta",
    "MetaGradient",
    "MetaMatch",
    "MetaSemi",
    "MixMatch",
    "PiModel",
    "PseudoLabel",
    "ReMixMatch",
    "Supervised",
    "TemporalEnsembling",
    "VAdD",
    "VAdDTerm",
    "parts",
]
