"""Public names, arguments and defaults are those that are recorded."""

from pathlib import Path

from .definitions import definitions

RECORDED = Path(__file__).with_name("definitions.txt")


def test_public_definitions_are_the_recorded_ones():
    """An addition is recorded by definitions.py. A change or a removal breaks the promise of
    docs/stability.md: saved models and users' programs stop working."""
    assert definitions() == RECORDED.read_text().splitlines()
