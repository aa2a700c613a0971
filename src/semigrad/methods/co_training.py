"""Deep Co-Training for Semi-Supervised Image Recognition (Qiao, Shen, Zhang, Wang, Yuille; 2018).

    L_sup = Σ_i CE(p_i(x_i), y)                                           every network on its own view of the labeled
    L_cot = H(½(p_i + p_j)) − ½(H(p_i) + H(p_j))                          mean over u: Jensen-Shannon divergence
    L_dif = H(p_i(z), p_j(g_i(z))) + H(p_j(z), p_i(g_j(z)))               mean over z in x ∪ u, H(p, q) = −Σ p log q
    g_i(z) = z + ε sign ∇_z CE(p_i(z), label)                             label: y, or argmax p_i(u)
    L = L_sup + w(t) Σ_pairs (λ_cot L_cot + λ_dif L_dif)

Networks agree on clean examples, and each withstands the adversarial examples of the other, which keeps them from
becoming one. Two networks are one pair; more are shuffled into disjoint pairs at each step, and with an odd number one
sits out. Gradients go through both sides of L_cot and L_dif, but not through g.

The paper leaves open how g is made, and no code of the authors was at hand. As a public reimplementation reports from
them: ε = 0.02 on images in [0, 1], the network's own answers as labels of u, no clamping. As in that code, g is made in
eval mode and all other passes are in train mode; here adversarial examples of x and u make one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.ops import entropy, soft_cross_entropy
from semigrad.core.passes import eval_mode
from semigrad.settings.fields import NotNegative, Several


@dataclass(frozen=True)
class CoTraining(Method):
    """Networks that agree on unlabeled examples while each withstands adversarial examples made against the other."""

    paper: ClassVar[str] = (
        "Qiao, Shen, Zhang, Wang, Yuille: Deep Co-Training for Semi-Supervised Image Recognition, 2018"
    )

    networks: Several = 2
    """How many networks are trained together."""
    agreement: NotNegative = 10.0
    """Weight λ_cot of the agreement on unlabeled examples."""
    difference: NotNegative = 0.5
    """Weight λ_dif of withstanding the other network's adversarial examples."""
    epsilon: NotNegative = 0.02
    """Size ε of the adversarial change of every pixel, or of every feature in standard deviations."""
    weight: NotNegative = 1.0
    """Weight w of both terms that pairs of networks share."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of w: a share of the run up to 1, above that steps."""
    joint: bool = False
    """Labeled and unlabeled rows share one pass and its batch statistics, as where a batch is drawn from both."""

    @property
    def traits(self) -> Traits:
        return Traits(labeled_views=("weak",) * self.networks, answers="first network")

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.register_buffer("unit", task.unit, persistent=False)
        memory.others = nn.ModuleList(task.fresh() for _ in range(self.networks - 1))
        return memory

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (u,), y = batch.unlabeled, batch.labels
        nets = [net, *memory.get_submodule("others").children()]
        passes = []
        for number, (own, x) in enumerate(zip(nets, batch.labeled, strict=True)):
            with clock.masks("labeled" if number == 0 else f"labeled {number}"):
                passes.append(own(torch.cat([x, u]) if self.joint else x))
        labeled = [F.cross_entropy(logits[: len(y)], y) for logits in passes]

        order = clock.draw("pairs", lambda rng, rows: rng.permutation(rows), len(nets)).tolist()
        agreement, difference = u.new_zeros(()), u.new_zeros(())
        size = self.epsilon * memory.get_buffer("unit")
        for i, j in zip(order[::2], order[1::2], strict=False):  # an odd one sits out
            clean, attacks = {}, {}
            for k in (i, j):
                with clock.masks(f"unlabeled {k}"):
                    clean[k] = passes[k] if self.joint else torch.cat([passes[k], nets[k](u)])
                attacks[k] = attack(nets[k], batch.labeled[k], y, u, size)
            agreement = agreement + jensen_shannon(clean[i][len(y) :], clean[j][len(y) :]).mean()
            for attacker, defender in ((i, j), (j, i)):
                with clock.masks(f"adversarial {defender}"):
                    answer = nets[defender](attacks[attacker])
                difference = difference + soft_cross_entropy(answer, clean[attacker].softmax(1))

        weight = self.weight * clock.gaussian_ramp(self.ramp)
        return {
            "labeled": labeled[0],
            "others labeled": torch.stack(labeled[1:]).sum(),
            "agreement": weight * self.agreement * agreement,
            "difference": weight * self.difference * difference,
        }


def jensen_shannon(logits: Tensor, others: Tensor) -> Tensor:
    """H(½(p + q)) − ½(H(p) + H(q)), one number for each row; the logarithm of the mixture is taken from those of p and
    q, so that it exists where both have underflowed."""
    log_mixture = torch.logaddexp(logits.log_softmax(1), others.log_softmax(1)) - math.log(2)
    return -(log_mixture.exp() * log_mixture).sum(1) - (entropy(logits) + entropy(others)) / 2


def attack(net: nn.Module, x: Tensor, y: Tensor, u: Tensor, size: Tensor) -> Tensor:
    """z + ε sign ∇_z CE for labeled rows with their labels, then for unlabeled rows with the network's own answers.

    Eval mode: rows do not depend on one another and statistics stay. Only the gradient of the input is computed."""
    z = torch.cat([x, u]).detach().requires_grad_()
    with torch.enable_grad(), eval_mode(net):
        logits = net(z)
        answers = torch.cat([y, logits[len(y) :].argmax(1)])
        (gradient,) = torch.autograd.grad(F.cross_entropy(logits, answers, reduction="sum"), z)
    return z.detach() + size * gradient.sign()
