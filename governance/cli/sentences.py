"""Each kind of entry as a sentence that somebody new to it understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from governance.cli.text import SHORT

_HOW: Final = {
    "reset": "after a reset",
    "retry": "as a retry",
    "continue_as_new": "as a continuation",
}
_VERDICTS: Final = {"approve": "approved", "reject": "rejected"}
_LIMITS: Final = {"decide_by": "to decide", "execute_by": "to run what was approved"}


class Said(Mapping[str, Any]):
    """What an entry says; what it does not say reads `?`."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        """Keep it."""
        self._payload: Final = payload

    def __getitem__(self, key: str) -> Any:
        """The value, or a question mark."""
        return self._payload.get(key, "?")

    def __iter__(self) -> Any:
        """The keys."""
        return iter(self._payload)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._payload)

    def short(self, key: str) -> str:
        """The beginning of an id or digest."""
        return str(self[key])[:SHORT]

    def words(self, key: str, nothing: str = "none") -> str:
        """A list of names."""
        value = self._payload.get(key) or []
        return ", ".join(map(str, value)) if isinstance(value, list) and value else nothing

    def roles(self) -> str:
        """The roles held at a reading."""
        held = self._payload.get("roles_held", self._payload.get("roles"))
        names = [str(one.get("role")) for one in held or [] if isinstance(one, dict)]
        return f"holding {', '.join(names)}" if names else "holding no role"

    def after(self, key: str, before: str = ": ") -> str:
        """A text behind a colon; nothing if it is empty."""
        value = self._payload.get(key)
        return f"{before}{value}" if value else ""


def _decided(said: Said) -> str:
    verb = _VERDICTS.get(said["verdict"], said["verdict"])
    sender = said.after("submitted_by", ", ")
    return (
        f'{said["decided_by"]} {verb} "{said["name"]}", {said.roles()} '
        f"({said['method']}{sender}){said.after('reason')}"
    )


def _vote(said: Said) -> str:
    return f"{_decided(said)}; {said['missing']} of {said['needed']} still missing"


def _revoked(said: Said) -> str:
    sender = said.after("submitted_by", ", ")
    return (
        f'{said["revoked_by"]} took the approval of "{said["name"]}" back, {said.roles()} '
        f"({said['method']}{sender}){said.after('reason')}"
    )


def _refused(said: Said) -> str:
    return (
        f"{said['refused']} tried to {said['verdict']}, {said.roles()}, and was refused: "
        f"{said['code']}"
    )


def _claimed(said: Said) -> str:
    approval = f", on approval {said.short('approval')}" if said.get("approval") else ""
    return f'Step "{said["step"]}" began, as {said["actor"]}, {said.roles()}{approval}'


def _injected(said: Said) -> str:
    what = "its recorded failure" if said.get("failed") is True else "its recorded result"
    return f'Step "{said["step"]}" was called again: {what} was given, nothing ran'


def _failed(said: Said) -> str:
    again = "" if said.get("terminal") is True else "; it will be tried again"
    return f'Step "{said["step"]}" failed: {said["code"]}{again}'


def _frozen(said: Said) -> str:
    return f"flow {said['flow']}" if said["flow"] else f"realm {said['realm']}"


_SENTENCES: Final[Mapping[str, Callable[[Said], str]]] = {
    "flow.started": lambda s: (
        f"{s['actor']} started {s['flow']}, {s.roles()}, under contract {s.short('contract')}"
    ),
    "flow.continued": lambda s: (
        f"The workflow went on {_HOW.get(s['how'], s['how'])}, as run {s['run_id']}"
    ),
    "flow.refused": lambda s: (
        f"A start of {s['flow']} ({s['workflow_id']}) was refused: {s['code']}"
    ),
    "flow.completed": lambda s: "The workflow completed",
    "flow.failed": lambda s: f"The workflow failed{s.after('code')}",
    "flow.cancelled": lambda s: "The workflow was cancelled",
    "approval.requested": lambda s: (
        f'Step "{s["step"]}" waits for a decision: {s["title"]} (takes one of: {s.words("roles")})'
    ),
    "approval.vote": _vote,
    "approval.decided": _decided,
    "approval.revoked": _revoked,
    "approval.refused": _refused,
    "approval.withdrawn": lambda s: (
        f"The request was withdrawn{s.after('by', ' by ')}{s.after('why')}"
    ),
    "approval.expired": lambda s: f"The time {_LIMITS.get(s['limit'], s['limit'])} ran out",
    "resume.admitted": lambda s: (
        f"{s['actor']} may go on, {s.roles()} (policy: {s.words('policy', 'any role')})"
    ),
    "resume.denied": lambda s: (
        f"{s['actor']} may not go on, {s.roles()} (policy: {s.words('policy', 'any role')})"
    ),
    "step.claimed": _claimed,
    "step.taken_over": lambda s: (
        f'Step "{s["step"]}" was taken over from an attempt that gave no sign of life'
    ),
    "step.executed": lambda s: f'Step "{s["step"]}" was executed; its result is on record',
    "step.failed": _failed,
    "step.injected": _injected,
    "step.evicted": lambda s: (
        f'An attempt at "{s["step"]}" came too late: another holds it, nothing was recorded'
    ),
    "step.refused": lambda s: f'Step "{s["step"]}" was not run: {s["code"]}',
    "role.granted": lambda s: (
        f'{s["by"]} granted {s["actor"]} the role "{s["role"]}"{s.after("reason")}'
    ),
    "role.revoked": lambda s: (
        f'{s["by"]} revoked {s["actor"]}\'s role "{s["role"]}"{s.after("reason")}'
    ),
    "contract.registered": lambda s: (
        f"{s['by']} registered a contract for {s['flow']}: {s.short('contract')}"
    ),
    "contract.activated": lambda s: (
        f"{s['by']} activated the contract {s.short('contract')} for {s['flow']}"
    ),
    "contract.retired": lambda s: (
        f"The contract {s.short('contract')} for {s['flow']} gave way to another, by {s['by']}"
    ),
    "freeze.set": lambda s: f"{s['by']} froze {_frozen(s)}{s.after('reason')}",
    "freeze.lifted": lambda s: f"{s['by']} let {_frozen(s)} go on{s.after('reason')}",
    "log.opened": lambda s: "The log was opened",
}


def sentence(kind: str, payload: Mapping[str, Any] | None) -> str:
    """What an entry says, in one sentence without its full stop.

    Args:
        kind: Entry type.
        payload: What happened; None if it was erased.
    """
    if payload is None:
        return f"{kind} (what it said was erased)"
    known = _SENTENCES.get(kind)
    return known(Said(payload)) if known else kind


def known_kinds() -> frozenset[str]:
    """The entry types that have a sentence of their own."""
    return frozenset(_SENTENCES)
