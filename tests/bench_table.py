"""What tests read from benchmarks/table.md."""

from statistics import median, quantiles

from pages import ROOT

TABLE = (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8")


def column(kind: str, name: str) -> dict[str, str]:
    """The cells of a column, by row of benchmarks/table.md."""
    found = {}
    position = None
    for line in TABLE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:] and cells[1] == "row":
            position = cells.index(name) if name in cells else None
        elif position and cells[1:] and cells[1].startswith(f"{kind} "):
            found[cells[1].removeprefix(f"{kind} ")] = cells[position]
    return found


def ratios(kind: str, peer: str) -> dict[str, float]:
    """The medians of the peer's time divided by ours, of the rows that the peer computes."""
    found = {row: cell.split()[0] for row, cell in column(kind, peer).items()}
    return {row: float(text) for row, text in found.items() if text not in ("–", "differs")}


def median_of(kind: str, peer: str) -> str:
    return f"{median(ratios(kind, peer).values()):.2f}"


def nine_of_ten(kind: str, peer: str) -> str:
    """From the 5th to the 95th percentile of the rows."""
    *_, last = found = quantiles(ratios(kind, peer).values(), n=20, method="inclusive")
    return f"{found[0]:.2f} to {last:.2f}"


def faster(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{sum(ratio < 1 for ratio in found)} of {len(found)}"
