"""Reads mutated files: `damage.py FOLDER SEED COUNT` exits with 0 if each was read or refused."""

import random
import sys
from pathlib import Path

import numpy as np

from tf_lstm_ops.checkpoints import candidates


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Data with a few bytes changed, or a part removed, doubled or cut off."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        start = chance.randrange(max(len(changed), 1))
        end = start + chance.choice((1, 1, 4, 64))
        how = chance.randrange(5)
        if how < 2:
            changed[start:end] = chance.randbytes(len(changed[start:end]))
        elif how == 2:
            del changed[start:end]
        elif how == 3:
            changed[start:start] = changed[start:end]
        else:
            del changed[start:]
    return bytes(changed)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    found = {}
    for candidate in candidates(path):
        try:
            weights = candidate.weights()
        except (OSError, ValueError) as error:
            assert str(error).strip(), repr(error)
            continue
        for k, cell in enumerate(weights.cells):
            found |= {f"{candidate.name} {k} {key}": a for key, a in cell.arrays().items()}
    return found


def main(folder: Path, seed: int, count: int) -> None:
    chance = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    roots = {
        file: Path((folder / "roots" / file.name).read_text())
        for file in files
        if (folder / "roots" / file.name).exists()
    }
    for _ in range(count):
        file = chance.choice(sorted(roots))
        original = file.read_bytes()
        file.write_bytes(mutated(original, chance))
        try:
            arrays_of(roots[file])
        except (OSError, ValueError) as error:
            assert str(error).strip(), repr(error)
        finally:
            file.write_bytes(original)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
