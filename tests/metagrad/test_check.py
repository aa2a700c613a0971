"""`check_metagrad` tells a right network from a wrong one."""

import pytest
import torch
from torch import nn

from semigrad.metagrad import check as check_module
from semigrad.metagrad.check import check_metagrad, peak_memory
from tests.metagrad.networks import batches, conv_net, tanh_mlp


@pytest.mark.parametrize("make", [tanh_mlp, conv_net])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_sound_network_passes(make, mode, capsys):
    torch.manual_seed(1)
    net = make()
    check = check_metagrad(net, *batches(net), mode=mode)
    rows = {row.operator: row for row in check.rows}
    assert rows["ForwardMode"].error < 1e-12
    assert rows["ForwardMode"].cosine == pytest.approx(1)
    assert 0 < rows["FiniteDifference"].error < 0.05
    assert rows["Lookahead"].error < 0.05
    assert rows["Unrolled"].memory >= rows["ForwardMode"].memory > 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in rows)


def doubling(said):
    """A function that doubles forward, and says that its slope is `said`."""

    class Doubling(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output): ...

        @staticmethod
        def backward(ctx, gradient):
            return said * gradient

        @staticmethod
        def jvp(ctx, tangent):
            return 2 * tangent

    return Doubling


class Liar(nn.Module):
    def forward(self, x):
        return doubling(3).apply(x)


def test_a_declared_gradient_that_is_wrong_is_found():
    net = nn.Sequential(nn.Linear(6, 9), Liar(), nn.Tanh(), nn.Linear(9, 4)).double()
    with pytest.raises(ArithmeticError, match="differs from the double backward"):
        check_metagrad(net, *batches(net), show=False)


class LiarWithoutRule(torch.autograd.Function):
    """The same lie, and no forward-mode rule to find it out by."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


def test_without_a_forward_mode_rule_nothing_is_claimed_of_it():
    torch.manual_seed(0)

    class Layer(nn.Module):
        def forward(self, x):
            return LiarWithoutRule.apply(x)

    net = nn.Sequential(nn.Linear(6, 9), Layer(), nn.Tanh(), nn.Linear(9, 4)).double()
    with pytest.warns(UserWarning, match="ForwardMode cannot be checked|declared derivative may be wrong") as told:
        check = check_metagrad(net, *batches(net), show=False)
    assert len(told) == 2
    assert "ForwardMode" not in {row.operator for row in check.rows}


def test_a_solved_batch_is_no_reason_to_warn():
    net = nn.Linear(6, 4).double()
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    y = torch.full((5, 4), 0.25, dtype=torch.float64)
    x, _, u = batches(nn.Sequential(net))
    check = check_metagrad(net, x, y, u, show=False)
    assert all(row.error == 0 and row.cosine == 1 for row in check.rows)


def test_a_meta_gradient_that_is_zero_though_the_labels_are_not_learned_gets_a_warning():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4, bias=False)).double()
    nn.init.constant_(net[0].bias, -1000.0)  # dead
    with pytest.warns(UserWarning, match="zero for all of u, though the labels ask for other answers") as told:
        check = check_metagrad(net, *batches(net), show=False)
    assert len(told) == 1
    assert all(row.error == 0 for row in check.rows)


def test_a_network_that_is_too_rough_for_differences_gets_a_warning():
    torch.manual_seed(0)

    class Rough(nn.Module):
        def forward(self, x):
            return torch.sin(3000 * x)

    net = nn.Sequential(nn.Linear(6, 9), Rough(), nn.Linear(9, 4)).double()
    with pytest.warns(UserWarning, match="use ForwardMode"):
        check_metagrad(net, *batches(net), show=False)


def test_float32_has_its_own_tolerance():
    torch.manual_seed(0)
    net = conv_net().float()
    x, y, u = batches(net)
    check = check_metagrad(net, x.float(), y, u.float(), show=False)
    assert {row.operator: row.error for row in check.rows}["ForwardMode"] < 1e-5


def test_peak_memory_is_what_is_held_at_a_time():
    def work():
        a = torch.zeros(1000, 250)
        del a
        b, c = torch.zeros(1000, 100), torch.zeros(1000, 50)
        return b, c

    assert peak_memory(work, torch.device("cpu")) == pytest.approx(1e6, rel=0.01)


def test_many_meta_steps_do_not_hold_on_to_memory():
    net = tanh_mlp()
    given = batches(net)

    def steps(count):
        from semigrad.metagrad import meta_pseudo_labels

        for _ in range(count):
            meta_pseudo_labels(net, *given, lr=0.1)

    device = torch.device("cpu")
    steps(3)
    assert peak_memory(lambda: steps(200), device) <= 1.01 * peak_memory(lambda: steps(2), device)


@pytest.mark.parametrize("sound", [True, False])
def test_whole_numbers_as_inputs_do_not_loosen_the_tolerance(sound):
    torch.manual_seed(0)

    class Layer(nn.Module):
        def forward(self, x):
            return doubling(2 if sound else 2.002).apply(x)

    net = nn.Sequential(nn.Embedding(20, 5), nn.Flatten(), nn.Linear(15, 9), Layer(), nn.Tanh(), nn.Linear(9, 4))
    x, u = torch.randint(20, (5, 3)), torch.randint(20, (7, 3))
    given = x, torch.randint(4, (5,)), u
    if sound:
        check = check_metagrad(net, *given, show=False)
        assert check.dtype == torch.float32
    else:
        with pytest.raises(ArithmeticError, match="more than 1e-05"):
            check_metagrad(net, *given, show=False)


def test_the_clock_is_read_when_the_device_has_done_its_work(monkeypatch):
    events = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: events.append("wait"))
    monkeypatch.setattr(check_module.time, "perf_counter", lambda: events.append("clock") or 0.0)
    check_module._interleaved_seconds({"a": lambda: events.append("work")}, torch.device("cuda"), rounds=1)
    assert events == 2 * ["wait", "clock", "work", "wait", "clock"]
