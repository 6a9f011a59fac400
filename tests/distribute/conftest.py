"""Makes launch.py importable by the tests of this folder, under every import mode of pytest."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
