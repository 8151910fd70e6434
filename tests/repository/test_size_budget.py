"""Modules and functions stay within the size budget."""

from pathlib import Path

import pytest

from tools import size_budget

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("group", size_budget.GROUPS, ids="+".join)
def test_size_budget(group: tuple[str, ...]) -> None:
    offences = size_budget.measure(ROOT / name for name in group).offences()
    assert not offences, "\n".join(["", *offences])


def test_too_long_is_found(tmp_path: Path) -> None:
    body = "\n".join(["    x = 1"] * 50)
    (tmp_path / "long.py").write_text(f"@property\ndef f():\n{body}\n" + "y = 2\n" * 349)
    offences = size_budget.measure([tmp_path]).offences()
    assert any("long.py: module of 401 lines" in line for line in offences)
    assert any("long.py:2 f: function of 52 lines" in line for line in offences)
    assert any(line.startswith("median module: 401") for line in offences)
    assert any(line.startswith("p90 of functions: 52") for line in offences)


def test_within_the_budget_is_not(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("def f():\n    return 1\n")
    (tmp_path / "empty.py").touch()
    report = size_budget.measure([tmp_path])
    assert report.offences() == []
    assert report.median() == 2
