"""The reference page names every error and what it ends with; each entry has a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from governance import errors
from governance.cli import exits
from tests.cli.commands import ROOT

ERRORS = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")


def tree(root: type[errors.GovernanceError]) -> Iterator[type[errors.GovernanceError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child)


CLASSES = list(tree(errors.GovernanceError))


def test_each_error_has_one_row_that_tells_the_truth() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \| (\d) \| (.+?) \| (.*?) ?\|$", ERRORS, re.M)
    listed = {code: (again == "yes", int(code_)) for code, again, code_, _, _ in rows}
    assert len(listed) == len(rows)
    assert listed == {one.code: (one.retryable, exits.of(one)) for one in CLASSES}


def test_each_error_has_a_code_and_a_message_of_its_own() -> None:
    assert len({one.code for one in CLASSES}) == len(CLASSES)
    for one in CLASSES:
        assert one().message
        assert one.__name__ in (errors.__doc__ or "")


def test_a_verdict_ends_with_1_and_what_was_not_judged_with_2() -> None:
    judged = {
        errors.ActorMustNotDecide,
        errors.BarrierNotMet,
        errors.DigestMismatch,
        errors.AdministrationRefused,
        errors.ResumeDenied,
        errors.ChainBroken,
    }
    unusable = {
        errors.ApprovalUnknown,
        errors.AlreadyDecided,
        errors.ApprovalExpired,
        errors.ReasonRequired,
        errors.RoleUnknown,
        errors.ContractInvalid,
        errors.DatabaseUnavailable,
        errors.TemporalUnavailable,
        errors.SchemaMissing,
        errors.SchemaNewer,
        errors.NameClash,
    }
    assert {exits.of(one) for one in judged} == {exits.NEGATIVE}
    assert {exits.of(one) for one in unusable} == {exits.UNUSABLE}
