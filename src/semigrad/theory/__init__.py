"""The paper's lemma, theorems and remarks as measurements: what they claim, beside what happens.

Everything is in float64 and as in the proofs: all labeled data in every step, plain SGD with the same α in the inner
and the real step, squared error for the unlabeled and the labeled loss, one mode, no projection. Two networks on the
digits: a linear softmax model, whose constants M and L0 are proven (`constants`), and a small smooth MLP, whose
constants are only estimated along a run.

    scene         the data, the networks, and the points at which they are looked at
    algorithm     Algorithm 1, one step with the library's own operator
    linear        the same for the linear softmax model, in closed form and for many seeds at a time
    constants     M and L0, and the bounds that follow from them
    lemma1        Lipschitz ratios of ∇H against 4α²M²L0 and 4α²M²L0/B
    theorem1      G(θ_{t+1}) against G(θ_t) over β
    theorem2      min E‖∇G‖² against C/√T
    remarks       M along training runs with and without weight decay; D1 and D2 under learning-rate schedules
    consistency   the parts of the consistency gradient in training

The derivations are in docs/theory.md."""

from semigrad.theory.claim import Claim as Claim
