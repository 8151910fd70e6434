"""ARCHITECTURE.md names, for each invariant, tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\|\s*(I\d+)\s*\|(.*)\|\s*$", re.MULTILINE)
TEST = re.compile(r"(tests/[\w/]+\.py)((?:::\w+)+)")


def rows(text: str) -> dict[str, list[str]]:
    """The table's invariants with the tests in the last column."""
    return {
        name: [path + parts for path, parts in TEST.findall(cells.rsplit("|", 1)[-1])]
        for name, cells in ROW.findall(text)
    }


def exists(reference: str) -> bool:
    """Tells if ``tests/file.py::Class::test_name`` leads to a test function."""
    path, *parts = reference.split("::")
    if not parts[-1].startswith("test_") or not (ROOT / path).is_file():
        return False
    node: ast.AST = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for part in parts:
        children = {
            child.name: child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        if part not in children:
            return False
        node = children[part]
    return not isinstance(node, ast.ClassDef)


def test_each_invariant_has_tests_that_exist() -> None:
    table = rows((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert {f"I{number}" for number in range(1, 7)} <= set(table)
    for name, tests in table.items():
        assert tests, f"{name} names no test"
    missing = {name: [test for test in tests if not exists(test)] for name, tests in table.items()}
    assert not any(missing.values()), {name: tests for name, tests in missing.items() if tests}


def test_rows_are_read() -> None:
    here = "tests/repository/test_invariants.py::test_rows_are_read"
    head = "| | Invariant | Where | Test |\n|---|---|---|---|\n"
    text = f"{head}| I1 | x \\| y | z | `{here}`, `{here}` |\n"
    assert rows(text) == {"I1": [here, here]}
    assert exists(here)
    assert not exists(here + "_not")
    assert not exists("tests/repository/test_invariants.py::rows")
