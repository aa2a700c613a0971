"""What is said of a process that is lost."""

import pytest

from semigrad.core.processes import Lost, lost_where_it_fails


@pytest.mark.parametrize(
    ("environment", "way_on"),
    [
        ({}, "start all of them again with --resume, or let torchrun do so (--max-restarts=1)."),
        (
            {"MAX_RESTARTS": "0", "RESTART_COUNT": "0"},
            "start all of them again with --resume, or let torchrun do so (--max-restarts=1).",
        ),
        (
            {"MAX_RESTARTS": "2", "RESTART_COUNT": "1"},
            "torchrun starts all of them again, and they go on from there.",
        ),
        (
            {"MAX_RESTARTS": "2", "RESTART_COUNT": "2"},
            "torchrun has started them again as often as --max-restarts=2 allows; start all of them once more.",
        ),
    ],
    ids=["no torchrun", "never", "one is left", "all used up"],
)
def test_the_way_on_is_advised_by_what_torchrun_was_told(environment, way_on, monkeypatch):
    for name in ("MAX_RESTARTS", "RESTART_COUNT"):
        monkeypatch.delenv(f"TORCHELASTIC_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"TORCHELASTIC_{name}", value)
    with pytest.raises(Lost) as caught, lost_where_it_fails():
        raise RuntimeError("[pair.cc:545] Connection closed by peer [127.0.0.1]:4242. This is typically\nmore")
    reason = "Connection closed by peer [127.0.0.1]:4242"
    text = (
        f"Another process of this run is lost, or does not answer ({reason}). What was saved before is kept: {way_on}"
    )
    assert str(caught.value) == text
