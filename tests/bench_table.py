"""What tests read from benchmarks/table.md."""

from pages import ROOT

TABLE = (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8")


def ratios(kind: str, peer: str) -> dict[str, float]:
    """The medians of the peer's time divided by ours, by row of benchmarks/table.md."""
    found = {}
    column = None
    for line in TABLE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:] and cells[1] == "row":
            column = cells.index(peer) if peer in cells else None
        elif column and cells[1:] and cells[1].startswith(f"{kind} ") and cells[column] != "–":
            found[cells[1].removeprefix(f"{kind} ")] = float(cells[column].split()[0])
    return found


def range_of(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{min(found):.2f} to {max(found):.2f}"


def faster(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{sum(ratio < 1 for ratio in found)} of {len(found)} rows of {kind}"
