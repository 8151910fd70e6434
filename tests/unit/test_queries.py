"""Named statements: how files are read, and that code and files name the same ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import pytest

import governance
from governance.db.queries import load, parse, sql_folder, topics

PACKAGE = Path(governance.__file__).parent
PACKAGES = (PACKAGE, PACKAGE.parent / "temporal_integration")


def test_a_statement_has_neither_its_comments_nor_its_semicolon() -> None:
    found = parse(
        "t",
        "-- The file.\n\n-- name: one\n-- Why.\n\n-- More.\nSELECT 1 -- kept\nFROM a;\n\n"
        "-- name: two\nSELECT ';' || E'--'",
    )
    assert found == {"one": "SELECT 1 -- kept\nFROM a", "two": "SELECT ';' || E'--'"}
    assert list(found) == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;\n-- name: a\nSELECT 2;", "before the first"),
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "two statements are named 'a'"),
        ("-- name: a\n-- only words\n\n-- name: b\nSELECT 1;", "'a' has no statement"),
        ("-- name: a\n;", "'a' has no statement"),
        ("-- name: A\nSELECT 1;", "'A' is not a name"),
        ("-- name:\nSELECT 1;", "'' is not a name"),
    ],
)
def test_a_malformed_file_is_refused(text: LiteralString, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse("t", text)


def test_an_unknown_topic_or_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(KeyError, match=r"there is: .*transaction"):
        load("no_such_topic")
    with pytest.raises(KeyError, match="no SQL file"):
        load("../schema")
    with pytest.raises(KeyError, match=r"no statement named 'begn'; it has: .*begin"):
        load("transaction")["begn"]


def loads(call: ast.expr) -> str | None:
    """The topic, if the expression is `load("topic")`."""
    match call:
        case ast.Call(func=ast.Name("load"), args=[ast.Constant(value=str(topic))]):
            return topic
    return None


def named_in(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Topic and name of each statement that a module looks up."""
    topic_of = {
        target.id: topic
        for node in ast.walk(module)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and (topic := loads(node.value))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        match node:
            case ast.Subscript(value=ast.Name(variable), slice=ast.Constant(value=str(name))):
                if variable in topic_of:
                    yield topic_of[variable], name
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=str(name))):
                if topic := loads(call):
                    yield topic, name


def test_code_and_files_name_the_same_statements() -> None:
    looked_up = {
        named
        for package in PACKAGES
        for file in package.rglob("*.py")
        for named in named_in(ast.parse(file.read_text()))
    }
    there = {(topic, name) for topic in topics() for name in load(topic)}
    assert looked_up - there == set(), "looked up, but in no file"
    assert there - looked_up == set(), "in a file, but never looked up"


def test_each_migration_runs_as_the_owner_and_leaves_the_transaction_to_the_runner() -> None:
    for file in (sql_folder() / "migrations").iterdir():
        lines = file.read_text().splitlines()
        assert "SET LOCAL ROLE governance_owner;" in lines, file.name
        assert not [line for line in lines if line.startswith(("BEGIN;", "COMMIT", "ROLLBACK"))], (
            file.name
        )
