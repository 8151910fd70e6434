"""The reference page names every command and option, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from governance.cli import exits
from governance.cli.app import command
from governance.cli.approvals import State
from governance.names import ApprovalState
from tests.cli.commands import ROOT

CLI = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
OPTION = re.compile(r"`(--?[a-z][a-z-]*)")


def commands(group: Any = None, path: str = "governance") -> Iterator[tuple[str, Any]]:
    """Every command that is not hidden, with its path, groups left out."""
    for name, found in (group or command()).commands.items():
        if found.hidden:
            continue
        if hasattr(found, "commands"):
            yield from commands(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


def sections() -> dict[str, str]:
    """The sections of the page, by the command they are about."""
    parts = re.split(r"^### (governance .*)$", CLI, flags=re.MULTILINE)
    bodies = [re.split(r"^## ", body, flags=re.MULTILINE)[0] for body in parts[2::2]]
    return dict(zip(parts[1::2], bodies, strict=True))


def test_each_command_has_its_section() -> None:
    assert set(sections()) == {path for path, _ in commands()}


@pytest.mark.parametrize(("path", "found"), list(commands()), ids=lambda value: str(value)[:40])
def test_a_section_names_what_its_command_takes(path: str, found: Any) -> None:
    section = sections()[path]
    options, arguments = set[str](), set[str]()
    for parameter in found.params:
        if parameter.param_type_name == "argument":
            arguments.add(parameter.metavar.strip("[]"))
        else:
            options.update(parameter.opts)
            assert parameter.help, f"{path} {parameter.opts} has no help"
    assert set(OPTION.findall(section)) == options
    for argument in arguments:
        assert f"`{argument}`" in section
        assert argument in section.splitlines()[2]
    assert found.help
    assert f"    {path}" in section


def test_the_options_of_the_whole_are_named() -> None:
    root = re.split(r"^## governance$", CLI, flags=re.MULTILINE)[1].split("\n## ")[0]
    given = {name for parameter in command().params for name in parameter.opts}
    assert set(OPTION.findall(root)) == given | {"-h", "--help"}


def test_the_exit_codes_are_named() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and name[0] != "_"}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", CLI, re.MULTILINE)} == codes


def test_the_states_to_choose_from_are_those_there_are() -> None:
    assert {str(state) for state in State} == {str(state) for state in ApprovalState} | {"all"}
