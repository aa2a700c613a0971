"""Every method obeys the laws."""

import dataclasses
import io

import pytest
import torch

from semigrad.methods import METHODS, MetaGradient
from tests.laws import CLOCK, Trial, batch

CASES = {
    **{name: cls() for name, cls in METHODS.items()},
    "meta only": MetaGradient(mixup=False),
    "mixup only": MetaGradient(meta=False),
    "beta 0": MetaGradient(beta=0.0),
    "algorithm 1": MetaGradient(mixup=False, labeled_term=False),
    "train mode": MetaGradient(mode="train"),
    **{f"by {name}": MetaGradient(operator=name) for name in ("unrolled", "finite-difference", "lookahead")},
}
every_method = pytest.mark.parametrize("method", CASES.values(), ids=CASES)


@every_method
def test_terms_are_finite_scalars_with_names(method):
    terms = Trial(method).terms(batch(method))
    assert terms
    assert all(value.shape == () and value.isfinite() for value in terms.values())


@every_method
def test_the_unlabeled_term_reaches_the_weights(method):
    trial = Trial(method)
    trial.steps(0, 20)
    terms = trial.terms(batch(method))
    unlabeled = [value for name, value in terms.items() if name != "labeled"]
    if not method.views:
        assert not unlabeled
        return
    gradients = torch.autograd.grad(sum(unlabeled), list(trial.net.parameters()))
    assert all(gradient.norm() > 0 for gradient in gradients)
    changed = dataclasses.replace(batch(method), unlabeled=tuple(1 - u for u in batch(method).unlabeled))
    others = torch.autograd.grad(sum(trial.terms(changed).values()), list(trial.net.parameters()))
    assert any(not torch.equal(a, b) for a, b in zip(gradients, others, strict=True))


@every_method
def test_state_survives_a_checkpoint_bit_for_bit(method):
    whole = Trial(method)
    whole.steps(0, 12)
    first = Trial(method)
    first.steps(0, 5)
    buffer = io.BytesIO()
    torch.save({"net": first.net.state_dict(), "memory": first.memory.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    second = Trial(method)
    second.net.load_state_dict(saved["net"])
    second.memory.load_state_dict(saved["memory"])
    second.steps(5, 12)
    assert all(torch.equal(value, second.state()[name]) for name, value in whole.state().items())


@every_method
def test_a_step_is_a_pure_function_of_its_clock_and_batch(method):
    one, other = Trial(method), Trial(method)
    torch.manual_seed(123)
    one.steps(0, 3)
    torch.manual_seed(456)
    other.steps(0, 3)
    assert all(torch.equal(value, other.state()[name]) for name, value in one.state().items())


@every_method
@pytest.mark.parametrize(("classes", "rows"), [(2, 8), (100, 8), (3, 7), (3, 1)])
def test_binary_and_many_classes_and_odd_batches(method, classes, rows):
    trial = Trial(method, classes)
    trial.steps(0, 3, rows=rows)
    assert all(value.isfinite().all() for value in trial.state().values())


@every_method
def test_a_batch_of_one_class(method):
    given = dataclasses.replace(batch(method), labels=torch.zeros(8, dtype=torch.long))
    assert all(value.isfinite() for value in Trial(method).terms(given).values())


@every_method
def test_float64(method):
    terms = Trial(method, dtype=torch.float64).terms(batch(method))
    assert all(value.dtype == torch.float64 for value in terms.values())


@every_method
def test_permuting_the_batch_changes_nothing_where_pairs_move_together(method):
    """Mixup pairs by place, so labeled and unlabeled rows are permuted together and without dropout; its weights λ
    belong to places, so a method that mixes is asked for the terms that do not mix."""
    given = batch(method)
    order = torch.tensor([3, 1, 7, 0, 2, 6, 5, 4])
    moved = dataclasses.replace(
        given.map(lambda x: x[order]), labels=given.labels[order], labeled_index=given.labeled_index[order],
        unlabeled_index=given.unlabeled_index[order] if method.views else given.unlabeled_index,
    )  # fmt: skip
    trial = Trial(method, drop=0.0, dtype=torch.float64)
    before, after = trial.terms(given, CLOCK), trial.terms(moved, CLOCK)
    for name in before.keys() - {"mixed"}:
        assert torch.allclose(before[name], after[name], rtol=1e-10, atol=1e-14)
