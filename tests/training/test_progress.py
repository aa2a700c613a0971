"""Who is told how a run goes hears every step's own figures, and every line of metrics."""

import pytest
import torch

from semigrad.settings import Execution
from semigrad.training.figures import quality
from semigrad.training.progress import Bar, Lines, Quiet, in_short
from tests.small_runs import go, metrics, small


class Listener(Quiet):
    def __init__(self):
        super().__init__()
        self.steps, self.lines, self.ends = [], [], 0

    def step(self, done, figures):
        self.steps.append((done, dict(figures)))

    def line(self, figures):
        self.lines.append(dict(figures))

    def end(self):
        self.ends += 1


def test_figures_are_those_of_the_step_and_lines_are_means(tmp_path):
    often, seldom = Listener(), Listener()
    go(small(steps=10), tmp_path / "often", progress=often, execution=Execution(threads=1, log_every=1))
    go(small(steps=10), tmp_path / "seldom", progress=seldom, execution=Execution(threads=1, log_every=5))
    assert often.steps == seldom.steps
    assert [done for done, _ in seldom.steps] == list(range(1, 11))
    losses = [figures["loss"] for _, figures in seldom.steps]
    assert len(set(losses)) == 10
    assert [line["step"] for line in seldom.lines] == [5, 10]
    means = [sum(losses[:5]) / 5, sum(losses[5:]) / 5]
    assert [line["loss"] for line in seldom.lines] == pytest.approx(means, rel=1e-12)
    written = [{name: value for name, value in line.items() if name != "seconds"} for line in seldom.lines]
    assert written == metrics(tmp_path / "seldom")
    assert (often.ends, seldom.ends) == (1, 1)


@pytest.mark.parametrize(("threshold", "share"), [(0.0, 1.0), (1.01, 0.0)])
def test_lines_tell_which_share_of_the_pseudo_labels_is_used(threshold, share, tmp_path):
    go(small(steps=4, method={"name": "fixmatch", "threshold": threshold}), tmp_path)
    assert {line["pseudo_label_share"] for line in metrics(tmp_path)} == {share}


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_and_confidence_are_those_of_the_pseudo_labels_that_count(weighted):
    """Of four: one is right, one is wrong, of one the truth is not known, and one does not count."""
    targets = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    guess = {"targets": targets, **({"weights": torch.tensor([1.0, 0.5, 1.0, 0.0])} if weighted else {})}
    found = quality(guess, torch.tensor([0, 0, -1, 1]))
    assert float(found["pseudo_label_accuracy"]) == pytest.approx(1 / 2 if weighted else 2 / 3)
    assert float(found["pseudo_label_confidence"]) == pytest.approx(2.4 / 3 if weighted else 3.0 / 4)
    assert ("pseudo_label_share" in found) == weighted
    if weighted:
        assert float(found["pseudo_label_share"]) == 3 / 4


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_what_is_shown_is_the_last_line(kind, tmp_path, capsys):
    progress = kind()
    go(small(steps=10, test_every=10), tmp_path, progress=progress, execution=Execution(threads=1, log_every=5))
    shown = in_short(progress.last)
    assert "test error" in shown
    assert "loss" in shown


def test_the_time_that_is_left_is_in_a_unit_that_suits(capsys, monkeypatch):
    lines = Lines(every=0.0)
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("semigrad.training.progress.time.monotonic", lambda: next(clock))
    lines.begin([], 100_000, 0)
    lines.step(10, {"loss": 1.0})
    lines.step(100_000, {"loss": 1.0})
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("step 10/100,000  1.0 steps/s  28 h left")  # 99,990 s
    assert "  0 s left" in last
