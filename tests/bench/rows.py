"""A benchmark's row, and how rows are shown and kept."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path("bench-results.json")


@dataclass(frozen=True)
class Row:
    """One measured row: medians of `runs` runs, both sides interleaved.

    Attributes:
        name: What was measured.
        unit: Of `ours`, `baseline` and `added`.
        ours: With the product.
        baseline: Without it.
        ratio: ours / baseline.
        added: ours - baseline.
        runs: How many runs of each side.
        limit: The bound this row is held to, in words.
        holds: Whether it is within.
    """

    name: str
    unit: str
    ours: float
    baseline: float
    ratio: float
    added: float
    runs: int
    limit: str
    holds: bool


def row(
    name: str,
    unit: str,
    ours: Sequence[float],
    baseline: Sequence[float],
    *,
    most_ratio: float = math.inf,
    most_added: float = math.inf,
    least_ratio: float = -math.inf,
) -> Row:
    """A row from paired runs; it holds if all bounds do."""
    mine, theirs = statistics.median(ours), statistics.median(baseline)
    ratio, added = mine / theirs, mine - theirs
    bounds = {
        f"ratio <= {most_ratio}": ratio <= most_ratio,
        f"ratio >= {least_ratio}": ratio >= least_ratio,
        f"added <= {most_added} {unit}": added <= most_added,
    }
    return Row(
        name=name,
        unit=unit,
        ours=round(mine, 3),
        baseline=round(theirs, 3),
        ratio=round(ratio, 3),
        added=round(added, 3),
        runs=len(ours),
        limit=", ".join(text for text in bounds if "inf" not in text),
        holds=all(bounds.values()),
    )


def show(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    head = f"{'name':20} {'ours':>10} {'baseline':>10} {'ratio':>7} {'added':>9} unit  runs  holds"
    lines = [
        f"{r.name:20} {r.ours:10.2f} {r.baseline:10.2f} {r.ratio:7.3f} {r.added:9.2f} "
        f"{r.unit:5} {r.runs:4}  {'yes' if r.holds else 'NO'} ({r.limit})"
        for r in rows
    ]
    return "\n".join([head, *lines])


def keep(rows: Sequence[Row], settings: dict[str, str], file: Path = RESULTS) -> None:
    """Write the rows as JSON."""
    content = {"settings": settings, "rows": [asdict(r) for r in rows]}
    file.write_text(json.dumps(content, indent=2) + "\n")
