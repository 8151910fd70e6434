"""The card of an approval: what a person reads before deciding, in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from governance.approvals import Approval
from governance.cli.text import SHORT, clock, moment, one_of, span
from governance.db.statements import Row
from governance.eligibility import Eligibility
from governance.names import ApprovalState, Verdict
from governance.rules.quorum import what_is_missing
from governance.rules.template import render_links

_DONE = {Verdict.APPROVE: "approved", Verdict.REJECT: "rejected"}
_COUNTS = {True: "counts", False: "does not count"}


def as_data(found: Approval, reader: Eligibility) -> dict[str, Any]:
    """The card as one JSON object."""
    return {
        "approval_id": found.id,
        "state": found.state,
        "title": found.title,
        "requested_by": found.requested_by,
        "rule": rule(found),
        "instructions": found.rule.instructions,
        "step": found.step,
        "input": _input(found),
        "input_digest": found.input_digest,
        "binds": list(_binds(found)),
        "links": render_links(found.rule, found.shown),
        "on_approve": on_approve(found),
        "on_reject": on_reject(found),
        "needs": {
            "approvers": found.rule.needed,
            "missing": _missing(found),
            "roles": list(found.roles),
        },
        "decisions": list(found.decisions),
        "votes": [
            {"by": vote.by, "counts": vote.counts, "why": vote.why} for vote in found.tally.votes
        ],
        "eligibility": _eligibility(reader),
        "decide_by": found.decide_by,
        "execute_by": found.execute_by,
        "used_at": found.used_at,
        "requested_at": found.requested_at,
        "workflow_id": found.workflow_id,
        "flow": found.flow,
        "execution_id": found.execution,
        "contract_digest": found.contract.digest,
    }


def as_fields(found: Approval, reader: Eligibility) -> list[tuple[str, str]]:
    """The card as labels and values, below its title."""
    optional = [
        ("Instructions", found.rule.instructions or ""),
        ("Links", _pairs(render_links(found.rule, found.shown))),
    ]
    after = [(label, value) for label, value in optional if value]
    return [
        ("State", found.state),
        ("Requested by", found.requested_by),
        ("Why it stopped", rule(found)),
        *after[:1],
        ("What will run", f'step "{found.step}"'),
        ("Input", _pairs(_input(found)) or "(the contract shows none of it)"),
        *after[1:],
        ("Input digest", found.input_digest.hex()),
        ("Approve →", on_approve(found)),
        ("Reject →", on_reject(found)),
        ("Decisions", _decisions(found)),
        ("You", you(reader)),
        ("Decide by", _decide_by(found)),
        ("Run by", _run_by(found)),
        ("Waiting since", moment(found.requested_at, found.now)),
        ("Workflow", f"{found.workflow_id} ({found.flow})"),
        ("Execution", found.execution.hex),
        ("Approval", found.id.hex),
    ]


def rule(found: Approval) -> str:
    """Why it stopped: who has to decide, by which rule of which contract."""
    version = f" {found.contract.version}" if found.contract.version else ""
    apart = ", who must not be the one who asked" if "actor" in found.rule.duties else ""
    needed = found.rule.needed
    how_many = "one" if needed == 1 else f"{needed} different people, each"
    return (
        f'"{found.name}" takes {how_many} {one_of(found.roles)}{apart} '
        f"(contract {found.flow}{version}, {found.contract.digest.hex()[:SHORT]})."
    )


def on_approve(found: Approval) -> str:
    """What an approval leads to."""
    who, binds = found.requested_by, _binds(found)
    same = f"these values of it: {', '.join(binds)}" if binds else "its whole input"
    return f'"{found.step}" runs once, as {who}, if {who} may still go on then. Bound to {same}.'


def on_reject(found: Approval) -> str:
    """What a rejection leads to."""
    return f'"{found.step}" is not run; the workflow gets the error approval_rejected.'


def you(reader: Eligibility) -> str:
    """Whether the reader may decide, and why or why not."""
    if reader.refusal is None:
        return f"{reader.person} can decide, holding {', '.join(reader.roles)}."
    return f"{reader.person} cannot decide: {reader.refusal.message}"


def _input(found: Approval) -> dict[str, str]:
    """The shown values, in the contract's order."""
    labels = [one.label for one in found.rule.show if one.label in found.shown]
    return {label: found.shown[label] for label in labels} | found.shown


def _binds(found: Approval) -> tuple[str, ...]:
    """The paths to which the approval is bound; none stands for the whole input."""
    steps = (step for step in found.contract.steps if step.name == found.step)
    return next((step.binds for step in steps), ())


def _eligibility(reader: Eligibility) -> dict[str, Any]:
    refusal = reader.refusal
    return {
        "person": reader.person,
        "may_decide": refusal is None,
        "roles": list(reader.roles),
        "code": refusal.code if refusal else None,
        "reason": refusal.message if refusal else None,
    }


def _pairs(values: Mapping[str, str]) -> str:
    width = max((len(label) for label in values), default=0)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in values.items())


def _decisions(found: Approval) -> str:
    tally = found.tally
    if not found.decisions:
        return f"none yet, 0 of {tally.needed}"
    lines = [_decision(row) for row in found.decisions]
    if tally.needed > 1 or found.rule.approver_recheck:
        lines += [f"{vote.by} {_COUNTS[vote.counts]}: {vote.why}" for vote in tally.votes]
    if tally.needed > 1 and _waits(found):
        missing = what_is_missing(tally.missing, tally.needed, found.roles)
        lines.append(f"still needed: {missing}")
    return "\n".join(lines)


def _missing(found: Approval) -> int:
    """How many more have to approve; none once it is decided."""
    return found.tally.missing if _waits(found) else 0


def _decision(row: Row) -> str:
    why = f": {row['reason']}" if row["reason"] else ""
    held = ", ".join(row["roles_held"])
    return (
        f"{row['decided_by']} {_DONE[Verdict(row['verdict'])]} at {clock(row['at'])}, holding "
        f"{held} ({row['method']}, {row['submitted_by'] or 'sender unknown'}){why}"
    )


def _decide_by(found: Approval) -> str:
    if found.decide_by is None:
        return "no limit"
    then = "; then it expires and the step is not run" if _waits(found) else ""
    return f"{moment(found.decide_by, found.now)}{then}"


def _run_by(found: Approval) -> str:
    if found.execute_by is not None:
        return moment(found.execute_by, found.now)
    if found.used_at is not None:
        return f"ran {moment(found.used_at, found.now)}"
    if found.rule.execute_by is None:
        return "no limit"
    return f"{span(found.rule.execute_by)} after the approval"


def _waits(found: Approval) -> bool:
    return found.state is ApprovalState.PENDING
