"""A method of one's own, complete: the prediction must not change under another dropout mask."""

from dataclasses import dataclass

from torch.nn import functional as F

from semigrad.core import Method
from semigrad.ops import squared_error


@dataclass(frozen=True)
class Toy(Method):
    """Two passes with different dropout masks must agree."""

    weight: float = 1.0
    """Weight of the agreement."""

    def loss(self, net, memory, batch, guess, clock):
        (x,), (u,) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("one"):
            one = net(u).softmax(1)
        with clock.masks("other"):
            other = net(u).softmax(1)
        return {"labeled": labeled, "agreement": self.weight * squared_error(one, other)}
