"""The rules in rules.mm: what the fake frameworks refuse, and when they run work. Each runs in a
process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from metal import build

pytestmark = pytest.mark.metal

RULES = re.findall(r"^void (\w+)\(\) \{", (build.HERE / "rules.mm").read_text(), re.MULTILINE)
CALL = """
import ctypes, sys
rules = ctypes.CDLL(sys.argv[1])
rules.OpenPool()
rules[sys.argv[2]]()
"""
ENDS_THE_PROCESS = {"LostWorkEndsTheProcess": "a command buffer with work was never committed"}


@pytest.fixture(scope="module")
def library(make) -> Path:
    return make(build.build_rules)


@pytest.mark.parametrize("name", RULES)
def test_rule(library, name):
    command = [sys.executable, "-c", CALL, str(library), name]
    done = subprocess.run(command, capture_output=True, text=True)
    if name in ENDS_THE_PROCESS:
        assert done.returncode != 0 and f"fake: {ENDS_THE_PROCESS[name]}" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
