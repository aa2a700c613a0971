"""How processes take leave of each other; with a store in this process in the place of one that they share."""

import pytest
from torch import distributed

from semigrad.core.processes import Processes
from semigrad.training import joining
from semigrad.training.joining import Meeting, part, said, say_goodbye

FIRST, OTHER = Processes(0, 2), Processes(1, 2)


@pytest.fixture
def store(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    made = distributed.HashStore()
    monkeypatch.setattr(joining, "_meeting", Meeting(made))
    return made


class Gone:
    def set(self, key, value):
        pytest.fail("asked for")


def test_goodbye_is_said_once_and_taken_back_where_another_run_follows(store, monkeypatch):
    say_goodbye(OTHER)
    assert said(store, "goodbye 1") == "said"
    say_goodbye(OTHER, False)
    assert said(store, "goodbye 1") == "taken back"
    say_goodbye(OTHER)
    monkeypatch.setattr(joining._meeting, "store", Gone())
    part(OTHER)  # who has said it asks nobody, however late it is


def test_the_first_waits_for_goodbyes_that_are_meant(store, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        say_goodbye(OTHER)

    monkeypatch.setattr(joining.time, "sleep", wait)
    say_goodbye(OTHER)
    part(FIRST)
    assert waits == []
    say_goodbye(OTHER, False)
    part(FIRST)
    assert len(waits) == 1


def test_who_was_killed_is_not_waited_for_long(store, monkeypatch):
    monkeypatch.setattr(joining, "PARTING", 0.05)
    part(FIRST)
    assert said(store, "goodbye 1") == ""
