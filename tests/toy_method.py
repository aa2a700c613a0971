"""A method of one's own, complete: two views of an example must get one prediction."""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn import functional as F

from semigrad.core import Method
from semigrad.ops import squared_error


@dataclass(frozen=True)
class Toy(Method):
    """The predictions for two views must agree."""

    views: ClassVar = ("weak", "weak")

    weight: float = 1.0
    """Weight of the agreement."""

    def loss(self, net, memory, batch, guess, clock):
        (x,), (u, other) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("one"):
            one = net(u).softmax(1)
        with clock.masks("other"):
            two = net(other).softmax(1)
        return {"labeled": labeled, "agreement": self.weight * squared_error(one, two)}
