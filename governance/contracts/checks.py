"""What must hold between the fields of a contract, beyond each field's own type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from governance.contracts import form, glob, placeholders
from governance.contracts.problems import Problem, closest

if TYPE_CHECKING:
    from governance.contracts.models import ApprovalRule, Condition, FlowContract, StepRule

# A placeholder may stand only behind the host, so that no argument chooses the server.
_ADDRESS = re.compile(r"https?://[^/?#{}\\\s@]+[/?#]\S*|https?://[^/?#{}\\\s@]+")
_OPERATORS = "eq, in, lt, gte, exists"


def condition(one: Condition) -> Iterator[Problem]:
    """Find what does not fit together in a condition."""
    amounts = one.lt is not None or one.gte is not None
    if one.in_ is not None and not one.in_:
        yield Problem(("in",), "an empty list", "at least one value")
    if not amounts and one.eq is None and one.in_ is None and one.exists is None:
        yield Problem((), "no operator", f"at least one of {_OPERATORS}")
    if one.exists is False and (amounts or one.eq is not None or one.in_ is not None):
        yield Problem(("exists",), "false beside another operator", "false alone")
    if (one.currency is None) != (one.currency_path is None):
        yield Problem((), "one of currency and currency_path", "both or neither")
    if one.currency is not None and not amounts:
        yield Problem(("currency",), repr(one.currency), "only beside lt or gte")


def approval(rule: ApprovalRule) -> Iterator[Problem]:
    """Find what does not fit together in an approval."""
    readable = [item.path for item in rule.show]
    yield from _repeated(("show",), [item.label for item in rule.show])
    yield from _repeated(("links",), [link.label for link in rule.links])
    if rule.title is not None:
        yield from _template(("title",), rule.title, readable)
    for position, link in enumerate(rule.links):
        path = ("links", position, "url")
        if not _ADDRESS.fullmatch(link.url):
            allowed = "an address with https:// or http://, a host, and placeholders only after it"
            yield Problem(path, repr(link.url), allowed)
        yield from _template(path, link.url, readable)


def step(rule: StepRule) -> Iterator[Problem]:
    """Find what does not fit together in a step."""
    if glob.is_glob(rule.name):
        yield Problem(
            ("name",), repr(rule.name), "a name without * and ?, required where activity is a glob"
        )
    if rule.calls != "activity" and rule.kind == "effect":
        yield Problem(
            ("kind",),
            f"'effect' with calls = '{rule.calls}'",
            "'template' or 'model'; only an activity can be claimed, so only it can be an effect",
        )
    if rule.kind == "model" and rule.approval is not None:
        yield Problem(("approval",), repr(rule.approval), "nothing on a step of kind 'model'")


def contract(whole: FlowContract, max_bytes: int) -> Iterator[Problem]:
    """Find what does not fit together in a contract."""
    for position, rule in enumerate(whole.steps):
        if rule.approval is not None and rule.approval not in whole.approvals:
            allowed = closest(rule.approval, whole.approvals)
            yield Problem(("steps", position, "approval"), repr(rule.approval), allowed)
        earlier = whole.steps[:position]
        if any(rule.name == other.name for other in earlier):
            allowed = "a name that no other step has"
            yield Problem(("steps", position, "name"), repr(rule.name), allowed)
        yield from _unreachable(position, rule, earlier)
    size = len(whole.canonical())
    if size > max_bytes:
        yield Problem((), f"{size} bytes in canonical form", f"at most {max_bytes}")


def _unreachable(position: int, rule: StepRule, earlier: Sequence[StepRule]) -> Iterator[Problem]:
    for number, other in enumerate(earlier):
        same_calls = rule.calls == other.calls and glob.covers(other.activity, rule.activity)
        if same_calls and (not other.when or _plain(other) == _plain(rule)):
            yield Problem(
                ("steps", position),
                f"a step that never matches, because steps[{number}] ({other.name}) matches first",
                "the narrower step first",
            )
            return


def _plain(rule: StepRule) -> object:
    return form.plain(rule.when)


def _repeated(path: tuple[str, ...], labels: Sequence[str]) -> Iterator[Problem]:
    for position, label in enumerate(labels):
        if label in labels[:position]:
            yield Problem((*path, position, "label"), repr(label), "a label of its own")


def _template(
    path: tuple[str | int, ...], template: str, readable: Sequence[str]
) -> Iterator[Problem]:
    try:
        named = placeholders.paths(template)
    except ValueError as error:
        yield Problem(path, repr(template), f"text with placeholders as in {{/0/amount}} ({error})")
        return
    for name in named:
        if name not in readable:
            allowed = "paths listed in show: " + (closest(name, readable) if readable else "none")
            yield Problem(path, f"the placeholder {{{name}}}", allowed)
