"""Holds modules and functions to a size that can be read at once.

Modules: median at most 120 lines, a look again above 250, never above 400. Functions: nine
of ten at most 30 lines, never above 50. Lines are physical ones from the first (decorators
included) to the last; a nested function counts in its own right and in the outer one.
"""

import ast
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GROUPS = (("governance", "temporal_integration"), ("samples", "tests", "tools", "docker"))
"""Held to the same budget one by one, so that short tests hide no long product code."""

MODULE_MEDIAN = 120
MODULE_WARN = 250
MODULE_MAX = 400
FUNCTION_P90 = 30
FUNCTION_MAX = 50


@dataclass(frozen=True)
class Piece:
    """A module or function with its length in lines."""

    place: str
    lines: int


@dataclass
class Report:
    """What was measured, and what is too long."""

    modules: list[Piece] = field(default_factory=list[Piece])
    functions: list[Piece] = field(default_factory=list[Piece])

    def median(self) -> float:
        """Median length of a module; empty files are left out."""
        return statistics.median([piece.lines for piece in self.modules] or [0])

    def p90(self) -> int:
        """Length that nine of ten functions do not exceed (nearest rank)."""
        lengths = sorted(piece.lines for piece in self.functions) or [0]
        return lengths[math.ceil(0.9 * len(lengths)) - 1]

    def warnings(self) -> list[str]:
        """Modules to look at again."""
        return [
            f"{piece.place}: {piece.lines} lines, look again above {MODULE_WARN}"
            for piece in self.modules
            if MODULE_WARN < piece.lines <= MODULE_MAX
        ]

    def offences(self) -> list[str]:
        """What has to be made shorter."""
        found = [
            f"{piece.place}: module of {piece.lines} lines, at most {MODULE_MAX}"
            for piece in self.modules
            if piece.lines > MODULE_MAX
        ]
        found += [
            f"{piece.place}: function of {piece.lines} lines, at most {FUNCTION_MAX}"
            for piece in self.functions
            if piece.lines > FUNCTION_MAX
        ]
        if self.median() > MODULE_MEDIAN:
            found.append(f"median module: {self.median():g} lines, at most {MODULE_MEDIAN}")
        if self.p90() > FUNCTION_P90:
            found.append(f"p90 of functions: {self.p90()} lines, at most {FUNCTION_P90}; longest:")
            longest = sorted(self.functions, key=lambda piece: -piece.lines)[:5]
            found += [f"  {piece.place}: {piece.lines}" for piece in longest]
        return found


def functions(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """Yields name, first line and length of every function in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            yield node.name, node.lineno, (node.end_lineno or first) - first + 1


def measure(folders: Iterable[Path]) -> Report:
    """Measures every Python file below the folders.

    Raises:
        SyntaxError: a file is not valid Python.
    """
    report = Report()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            place = path.relative_to(folder.parent).as_posix()
            if lines := len(source.splitlines()):
                report.modules.append(Piece(place, lines))
            report.functions += [
                Piece(f"{place}:{line} {name}", length)
                for name, line, length in functions(ast.parse(source, place))
            ]
    return report


def main() -> int:
    """Prints figures, warnings and offences of each group; fails if there is an offence."""
    failed = False
    for group in GROUPS:
        report = measure(ROOT / name for name in group)
        offences = report.offences()
        failed = failed or bool(offences)
        print(
            f"{', '.join(group)}: {len(report.modules)} modules, median "
            f"{report.median():g} lines; {len(report.functions)} functions, p90 {report.p90()}"
        )
        for line in [*report.warnings(), *offences]:
            print(f"  {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
