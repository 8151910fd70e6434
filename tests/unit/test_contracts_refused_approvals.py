"""Approvals that a contract refuses, each with its path, what was found and allowed."""

from __future__ import annotations

import pytest

from governance.contracts import from_toml
from governance.errors import ContractInvalid

FLOW = "flow = 'F'\nsteps = [{ activity = 'a' }]\n"

CASES = [
    ("roles = []", "roles", "an empty list", "at least 1 in the list"),
    ("", "roles", "nothing", "required"),
    ("roles = ['r', '']", "roles[1]", "''", "not empty"),
    ("roles = ['r']\nduties = ['requester']", "duties[0]", "'requester'", "'actor'"),
    ("roles = ['r']\ndecide_by = 4", "decide_by", "4", "a duration such as"),
    ("roles = ['r']\ndecide_by = '4 d'", "decide_by", "'4 d'", "a duration such as"),
    ("roles = ['r']\ndecide_by = '0s'", "decide_by", "'0s'", "a duration such as"),
    ("roles = ['r']\nexecute_by = '1w'", "execute_by", "'1w'", "a duration such as"),
    ("roles = ['r']\nexecute_by = '9999d'", "execute_by", "'9999d'", "at most ten years"),
    *(
        (f"roles = ['r']\nneeded = {wrong}", "needed", wrong, "a whole number from 1 to 20")
        for wrong in ("0", "21", "-1", "2.0", "'2'", "true")
    ),
    ("roles = ['r']\napprover_recheck = 1", "approver_recheck", "1", "true or false"),
    ("roles = ['r']\ntitle = 'a {/0/b}'", "title", "{/0/b}", "paths listed in show: none"),
    (
        "roles = ['r']\nshow = ['/0/bb']\ntitle = 'a {/0/b}'",
        "title",
        "the placeholder {/0/b}",
        "/0/bb (did you mean /0/bb?)",
    ),
    ("roles = ['r']\ntitle = 'a {/0'", "title", "'a {/0'", "without its partner"),
    ("roles = ['r']\ntitle = 'a }'", "title", "'a }'", "without its partner"),
    ("roles = ['r']\ntitle = 'a {}'", "title", "'a {}'", "an empty placeholder"),
    ("roles = ['r']\ntitle = 'a\tb'", "title", "U+0009", "visible characters"),
    ("roles = ['r']\nshow = '/0'", "show", "'/0'", "a list, or a table"),
    ("roles = ['r']\nshow = { A = 'x' }", "show[0].path", "'x'", "a JSON Pointer"),
    ("roles = ['r']\nshow = ['/0/a', '/1/a']", "show[1].label", "'a'", "a label of its own"),
    (
        "roles = ['r']\nlinks = { A = 'javascript:x' }",
        "links[0].url",
        "'javascript:x'",
        "https",
    ),
    (
        "roles = ['r']\nlinks = { A = 'https://a b/' }",
        "links[0].url",
        "'https://a b/'",
        "https",
    ),
    ("roles = ['r']\nlinks = { A = 'https://u@h/' }", "links[0].url", "'https://u@h/'", "host"),
    (
        "roles = ['r']\nshow = ['/0/h']\nlinks = { A = 'https://{/0/h}/' }",
        "links[0].url",
        "'https://{/0/h}/'",
        "placeholders only after it",
    ),
    (
        "roles = ['r']\nlinks = { A = 'https://h/{/0/h}' }",
        "links[0].url",
        "the placeholder {/0/h}",
        "paths listed in show",
    ),
]


def refused(text: str) -> str:
    with pytest.raises(ContractInvalid) as caught:
        from_toml(text, "pay.toml")
    return caught.value.message


@pytest.mark.parametrize(("text", "path", "found", "allowed"), CASES)
def test_approvals(text: str, path: str, found: str, allowed: str) -> None:
    message = refused(FLOW + "[approvals.finance]\n" + text)
    assert message.startswith(f"pay.toml: approvals.finance.{path}: found ")
    assert found in message.split("; allowed: ")[0]
    assert allowed in message.split("; allowed: ")[1]


def test_names_of_approvals() -> None:
    message = refused(FLOW + "[approvals.'a b']\nroles = ['r']")
    assert message == (
        "pay.toml: approvals.'a b': found 'a b'; "
        "allowed: letters, digits, . - and _, beginning with a letter or digit"
    )
