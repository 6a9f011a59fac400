"""Makes pairs.py importable by the tests of this folder, under every import mode of pytest."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from pairs import FAMILIES, Family, label


@pytest.fixture(params=FAMILIES, ids=label)
def family(request: pytest.FixtureRequest) -> Family:
    """A test that asks for it runs for each layer."""
    return request.param
