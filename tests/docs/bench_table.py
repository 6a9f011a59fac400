"""What tests read from benchmarks/table.md: the parts of AMD with AVX-512 and with AVX2.

Ratios to a session, which the table does not have, come from the results of its part "sessions".
"""

import json
from statistics import geometric_mean, median
from typing import Any

from pages import ROOT

PAGE = (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8")
AVX512 = "AMD with AVX-512"
AVX2 = "AVX2 instructions on AMD with AVX-512"


def part(family: str) -> str:
    return PAGE.partition(f"\n## {family}\n")[2].partition("\n## ")[0]


TABLE = part(AVX512)
FALLS = 50  # a peer that takes so many times as long falls over


def column(kind: str, name: str, family: str = AVX512) -> dict[str, str]:
    """The cells of a column, by row of a family's part of benchmarks/table.md."""
    found = {}
    position = None
    for line in part(family).splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:] and cells[1] == "task":
            position = cells.index(name) if name in cells else None
        elif position and cells[1:] and cells[1].startswith(f"{kind} "):
            found[cells[1].removeprefix(f"{kind} ")] = cells[position]
    return found


def ratios(kind: str, peer: str, family: str = AVX512) -> dict[str, float]:
    """The medians of the peer's time divided by ours, of the rows that the peer computes."""
    found = {row: cell.split()[0] for row, cell in column(kind, peer, family).items()}
    return {row: float(text) for row, text in found.items() if text not in ("–", "differs")}


def median_of(kind: str, peer: str, family: str = AVX512) -> str:
    return f"{median(ratios(kind, peer, family).values()):.2f}"


def span(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{min(found):.2f} to {max(found):.2f}"


def fallen(kind: str) -> dict[str, tuple[str, float]]:
    """The rows in which Keras or PyTorch falls over, with the peer and its ratio."""
    return {
        row: (peer, ratio)
        for peer in ("Keras", "PyTorch")
        for row, ratio in ratios(kind, peer).items()
        if ratio > FALLS
    }


def fallen_rows() -> str:
    """The rows of all kinds in which a peer falls over, as pages name them."""
    assert not fallen("inference") and not fallen("fit")
    return " and ".join(
        f"{row.partition(', bidirectional')[0]} ({peer} {ratio:.2f})"
        for row, (peer, ratio) in fallen("training").items()
    )


def faster(kind: str, peer: str, family: str = AVX512) -> str:
    found = ratios(kind, peer, family).values()
    return f"{sum(ratio < 1 for ratio in found)} of {len(found)}"


def session_results(threads: int) -> dict[str, Any]:
    """The results of the part of the page with sessions."""
    name = f"amd_avx512_sessions_{threads}_thread{'s' * (threads > 1)}.json"
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def int8_results() -> dict[str, Any]:
    """The results of one step with weights of int8."""
    path = ROOT / "benchmarks" / "results" / "amd_avx512_int8_one_step_1_thread.json"
    return json.loads(path.read_text(encoding="utf-8"))


def session_ratios(threads: int, group: str, peer: str) -> dict[str, float]:
    """The medians of the peer's time divided by that of a session in the same round."""
    found = {}
    for row in session_results(threads)["rows"]:
        session, other = (row["peers"].get(name, {"values": []}) for name in ("session", peer))
        pairs = zip(session["values"], other["values"], strict=False)
        if row["group"] == group and other["values"]:
            found[row["name"]] = median(theirs / ours for ours, theirs in pairs)
    return found


def session_span(peer: str, threads: int = 2, group: str = "inference") -> str:
    """The geometric mean and the range of `session_ratios`."""
    found = session_ratios(threads, group, peer).values()
    return f"{geometric_mean(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def against_a_session(threads: int, group: str, peer: str) -> str:
    """The mean and the range of `session_ratios`, and how many are below 1."""
    found = session_ratios(threads, group, peer).values()
    below = sum(ratio < 1 for ratio in found)
    return f"{session_span(peer, threads, group)}, {below} of {len(found)}"
