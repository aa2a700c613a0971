"""The meta-gradient: what it is, what it must not touch, and the identities that follow from it."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core.ops import squared_error
from semigrad.errors import InputError
from semigrad.metagrad import (
    OPERATORS,
    FiniteDifference,
    ForwardMode,
    Lookahead,
    Problem,
    Unrolled,
    meta_pseudo_labels,
    project_labels,
    undisturbed,
)  # fmt: skip
from tests.metagrad.networks import batches, conv_net, relative, tanh_mlp

CPU = torch.device("cpu")


@pytest.fixture(params=[tanh_mlp, conv_net], ids=["mlp", "conv"])
def net(request):
    torch.manual_seed(1)
    return request.param()


@pytest.mark.parametrize("alpha", [0.0, 0.1, 3.0])
def test_d_is_b_over_alpha_times_the_derivative_of_the_labeled_loss_after_a_step(net, alpha):
    """Brute force from Equations 3 to 5: perturb one pseudo-label, take the SGD step, read the labeled loss."""
    net.eval()
    x, y, u = batches(net)
    names, values = zip(*net.named_parameters(), strict=True)
    target = net(u).softmax(1).detach()

    def labeled_loss_after_the_step(labels):
        inner = torch.autograd.grad(squared_error(net(u).softmax(1), labels), values)
        moved = {name: p - alpha * g for name, p, g in zip(names, values, inner, strict=True)}
        return F.cross_entropy(torch.func.functional_call(net, moved, (x,)), y).item()

    d = ForwardMode().gradient(Problem(net, x, y, u))
    for i, j in [(0, 0), (3, 2), (6, 3)]:
        nudge = torch.zeros_like(target)
        nudge[i, j] = 1e-5
        up, down = labeled_loss_after_the_step(target + nudge), labeled_loss_after_the_step(target - nudge)
        assert (up - down) / 2e-5 == pytest.approx(float(alpha / len(u) * d[i, j]), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_forward_mode_equals_double_backward(net, mode):
    with undisturbed(net, mode, CPU) as masks:
        problem = Problem(net, *batches(net), masks=masks)
        assert relative(ForwardMode().gradient(problem), Unrolled().gradient(problem)) < 1e-12


def test_the_finite_difference_error_falls_as_epsilon_squared():
    torch.manual_seed(0)
    net = tanh_mlp()
    problem = Problem(net, *batches(net))
    exact = ForwardMode().gradient(problem)
    coarse, fine = (relative(FiniteDifference(epsilon).gradient(problem), exact) for epsilon in (0.1, 0.01))
    assert coarse / fine == pytest.approx(100, rel=0.05)


def test_lookahead_equals_the_others_to_first_order(net):
    with undisturbed(net, "eval", CPU) as masks:
        problem = Problem(net, *batches(net), masks=masks)
        ratios = []
        for step in (1e-3, 1e-4):
            change = Lookahead().labels(problem, step) - ForwardMode().labels(problem, step)
            ratios.append(float(change.norm() / (step * ForwardMode().gradient(problem)).norm()))
    assert ratios[1] < 2e-2
    assert ratios[0] / ratios[1] == pytest.approx(10, rel=0.1)  # the residual is of second order


def test_the_rows_of_d_sum_to_zero_and_the_labels_to_one(net):
    problem = Problem(net.eval(), *batches(net))
    for operator in (ForwardMode(), Unrolled(), FiniteDifference()):
        assert operator.gradient(problem).sum(1).abs().max() < 1e-10
        assert torch.allclose(operator.labels(problem, 0.5).sum(1), torch.ones(7, dtype=torch.float64))


def test_the_consistency_gradient_is_the_gauss_newton_matrix_applied_to_g():
    """∇θ (1/B)Σ‖f − ŷ‖² at ŷ = f − 2sJg is (4s/B)·JᵀJ·g."""
    torch.manual_seed(0)
    net, step = tanh_mlp(), 0.3
    x, y, u = batches(net)
    problem = Problem(net, x, y, u)
    labels = ForwardMode().labels(problem, step)
    gradient = torch.autograd.grad(squared_error(net(u).softmax(1), labels), list(net.parameters()))
    f = net(u).softmax(1).flatten()
    jacobian = torch.stack(
        [torch.cat([g.flatten() for g in torch.autograd.grad(v, list(net.parameters()), retain_graph=True)]) for v in f]
    )
    g = torch.cat([g.flatten() for g in problem.direction.values()])
    assert torch.allclose(torch.cat([g.flatten() for g in gradient]), 4 * step / len(u) * jacobian.T @ jacobian @ g)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_nothing_is_disturbed(net, operator, mode):
    x, y, u = batches(net)
    net.train()
    net[1].eval()  # an odd mixture of modes has to come back too
    F.cross_entropy(net(x), y).backward()
    state, modes = copy.deepcopy(net.state_dict()), [m.training for m in net.modules()]
    grads, random = [p.grad.clone() for p in net.parameters()], torch.get_rng_state()
    labels = meta_pseudo_labels(net, x, y, u, lr=0.1, operator=OPERATORS[operator](), mode=mode)
    assert not labels.requires_grad
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert modes == [m.training for m in net.modules()]
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), grads, strict=True))
    assert torch.equal(random, torch.get_rng_state())


def test_with_separate_masks_train_mode_would_be_noise():
    """The control for sharing dropout masks between the passes: without it the difference quotient is far off."""
    torch.manual_seed(1)
    net = conv_net()
    with undisturbed(net, "train", CPU) as masks:
        problem = Problem(net, *batches(net), masks=masks)
        exact = ForwardMode().gradient(problem)
        other = Problem(net, problem.x, problem.y, problem.u, masks=masks + 7)
        size = 0.01 / float(torch.cat([g.flatten() for g in problem.direction.values()]).norm())
        unshared = (problem.predict(problem.along(size)) - other.predict(problem.along(-size))) / size
    assert relative(unshared, exact) > 0.5
    with undisturbed(net, "train", CPU) as masks:
        shared = FiniteDifference().gradient(problem)
    assert relative(shared, exact) < 0.05


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_solved_labeled_batch_leaves_the_predictions_as_they_are(operator):
    net = nn.Linear(3, 2).double()
    x, u = torch.zeros(2, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    with torch.no_grad():
        net.bias.zero_()
    y = torch.full((2, 2), 0.5, dtype=torch.float64)  # soft labels equal to the prediction: g = 0
    labels = meta_pseudo_labels(net, x, y, u, lr=1.0, operator=OPERATORS[operator]())
    assert torch.allclose(labels, net(u).softmax(1).detach(), atol=1e-12)


def test_a_gradient_that_is_not_finite_names_the_parameter():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    with torch.no_grad():
        net[0].weight[0, 0] = float("inf")
    with pytest.raises(FloatingPointError, match=r"'0\.weight'"):
        meta_pseudo_labels(net, torch.randn(2, 3), torch.tensor([0, 1]), torch.randn(2, 3), lr=0.1)


def test_printed_and_derived_scales_meet_at_beta_equal_to_the_batch(net):
    x, y, u = batches(net)
    printed = meta_pseudo_labels(net, x, y, u, lr=0.2, project="none")
    derived = meta_pseudo_labels(net, x, y, u, lr=0.2, beta=len(u), scale="derived", project="none")
    assert torch.allclose(printed, derived)


def test_soft_labels_equal_hard_ones_where_they_are_one_hot(net):
    x, y, u = batches(net)
    hard = meta_pseudo_labels(net, x, y, u, lr=0.2)
    soft = meta_pseudo_labels(net, x, F.one_hot(y, 4).double(), u, lr=0.2)
    assert torch.allclose(hard, soft)


def test_projections_are_applied(net):
    x, y, u = batches(net)
    wild = meta_pseudo_labels(net, x, y, u, lr=50.0, project="none")
    assert (wild < 0).any()
    for project in ("clip", "euclidean"):
        tame = meta_pseudo_labels(net, x, y, u, lr=50.0, project=project)
        assert (tame >= 0).all()
        assert torch.allclose(tame.sum(1), torch.ones(7, dtype=torch.float64))


def test_frozen_and_shared_and_unused_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.unused = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(2, 2)
            self.second.weight = self.first.weight  # shared
            self.head = nn.Linear(5, 3)
            self.first.bias.requires_grad_(False)  # frozen

        def forward(self, x):
            return self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))

    net = Tied().double()
    x, u = torch.randn(4, 5, dtype=torch.float64), torch.randn(6, 5, dtype=torch.float64)
    problem = Problem(net, x, torch.tensor([0, 1, 2, 0]), u)
    assert "first.bias" not in problem.parameters
    assert relative(ForwardMode().gradient(problem), Unrolled().gradient(problem)) < 1e-12


def test_without_a_forward_mode_rule_it_falls_back_and_says_so_once():
    net = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3).double())  # torch's weight norm has no such rule
    x, u = torch.randn(4, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0])
    with pytest.warns(UserWarning, match="without a forward-mode rule"):
        labels = meta_pseudo_labels(net, x, y, u, lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = meta_pseudo_labels(net, x, y, u, lr=0.1)
    exact = meta_pseudo_labels(net, x, y, u, lr=0.1, operator=Unrolled())
    assert torch.equal(labels, exact)
    assert torch.equal(again, exact)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": "pirnted"}, "There is no scale 'pirnted'. Did you mean 'printed'?"),
        ({"project": "euclidian"}, "There is no projection 'euclidian'. Did you mean 'euclidean'?"),
        ({"project": "euclidian", "beta": 0.0}, "There is no projection 'euclidian'"),
        ({"mode": "trian"}, "There is no mode 'trian'. Did you mean 'train'?"),
        ({"mode": None}, "There is no mode 'None'. Known: eval, train."),
    ],
)
def test_words_nobody_knows_are_refused(settings, message):
    net = tanh_mlp()
    with pytest.raises(InputError) as caught:
        meta_pseudo_labels(net, *batches(net), lr=0.1, **settings)
    assert str(caught.value).startswith(message)
    assert net.training


def test_a_projection_nobody_knows_is_refused_by_itself():
    with pytest.raises(InputError, match="Did you mean 'clip'"):
        project_labels(torch.eye(3), "cilp")


def test_no_projection_has_two_names(net):
    x, y, u = batches(net)
    one, other = (meta_pseudo_labels(net, x, y, u, lr=0.1, project=name) for name in (None, "none"))
    assert torch.equal(one, other)
