"""A method of one's own, complete: two views of an example must get one prediction."""

from dataclasses import dataclass

from torch.nn import functional as F

from semigrad.core import Method, Traits
from semigrad.core.ops import squared_error


@dataclass(frozen=True)
class Toy(Method):
    """The predictions for two views must agree."""

    weight: float = 1.0
    """Weight of the agreement."""

    @property
    def traits(self):
        return Traits(views=("weak", "weak"))

    def loss(self, net, memory, batch, guess, clock):
        (x,), (u, other) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("unlabeled"):
            one, two = net(u).softmax(1), net(other).softmax(1)
        return {"labeled": labeled, "agreement": self.weight * squared_error(one, two)}
