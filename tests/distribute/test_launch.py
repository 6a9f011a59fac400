"""The tests' launcher ends what waits for a program that failed."""

import launch
import pytest

WAITS = ["-c", "import time; time.sleep(600)"]


def test_returns_what_each_printed():
    assert launch.run_together(["-c", "print(1)"], ["-c", "print(2)"]) == ["1\n", "2\n"]


def test_failure_ends_the_others_and_shows_why():
    with pytest.raises(AssertionError, match="the reason") as failure:
        launch.run_together(WAITS, ["-c", "raise SystemExit('the reason')"])
    assert "exit status -9" in str(failure.value)


def test_time_limit(monkeypatch):
    monkeypatch.setattr(launch, "LIMIT", 0.2)
    with pytest.raises(AssertionError, match="exit status -9"):
        launch.run_together(WAITS)


def test_addresses_are_free_and_differ():
    addresses = launch.free_addresses(3).split(",")
    assert len(set(addresses)) == 3
