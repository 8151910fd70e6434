"""Do the states in the tables say what the entries say? Folds every entry and compares."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

from psycopg import sql

from governance import canonical
from governance.db import Connection, Database

_ENTRIES: Final = """
    SELECT e.stream, e.type, p.body, e.leaf FROM governance.entry e
    JOIN governance.payload p ON p.entry = e.id ORDER BY e.id
"""
_TABLES: Final[dict[str, LiteralString]] = {
    "executions": "SELECT id, state, code FROM governance.execution",
    "runs": "SELECT run_id, execution, generation FROM governance.run",
    "approvals": "SELECT replace(id::text, '-', ''), state FROM governance.approval",
    "decisions": "SELECT replace(approval::text, '-', ''), decided_by, verdict, leaf "
    "FROM governance.decision",
    "claims": "SELECT key, token, holder FROM governance.step WHERE token > 0",
    "outcomes": "SELECT key, sha256(outcome), done_by, done_token FROM governance.step "
    "WHERE outcome IS NOT NULL",
    "failures": "SELECT key, round FROM governance.step_failure",
    "grants": "SELECT realm, actor, role FROM governance.role_grant",
    "contracts": "SELECT realm, digest, state FROM governance.contract",
    "freezes": "SELECT replace(id::text, '-', ''), realm, coalesce(flow, ''), set_by, leaf, "
    "lifted_by FROM governance.freeze",
    "told": "SELECT replace(freeze_id::text, '-', ''), step FROM governance.freeze_told",
    "turns": "SELECT execution, kind FROM governance.turn",
    "wakes": "SELECT execution, topic FROM governance.outbox",
}

Payload = dict[str, Any]


@dataclass
class Books:
    """What the tables must hold if the entries are the whole story."""

    executions: dict[uuid.UUID, tuple[str, str | None]] = field(default_factory=dict)
    flows: dict[uuid.UUID, tuple[str, str]] = field(default_factory=dict)
    runs: dict[str, tuple[uuid.UUID, int]] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    asked: dict[str, bytes] = field(default_factory=dict)
    decisions: list[tuple[Any, ...]] = field(default_factory=list)
    claims: dict[bytes, tuple[int, uuid.UUID | None]] = field(default_factory=dict)
    outcomes: dict[bytes, tuple[bytes, uuid.UUID, int]] = field(default_factory=dict)
    failures: set[tuple[bytes, int]] = field(default_factory=set)
    grants: set[tuple[str, str, str]] = field(default_factory=set)
    contracts: dict[tuple[str, bytes], str] = field(default_factory=dict)
    freezes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    told: list[tuple[str, bytes]] = field(default_factory=list)
    turns: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    wakes: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    unheard: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def write(self, stream: uuid.UUID, kind: str, said: Payload, leaf: bytes) -> None:
        """Take in one entry."""
        match kind.split("."):
            case ["flow", how]:
                self._flow(stream, how, said)
            case ["resume", how]:
                self._resume(stream, how)
            case ["approval", how]:
                self._approval(stream, how, said, leaf)
            case ["step", how]:
                self._step(stream, how, said)
            case ["role", how]:
                self._role(how, said)
            case ["freeze", how]:
                self._freeze(how, said, leaf)
            case ["contract", how]:
                state = "active" if how == "activated" else how
                self.contracts[said["realm"], bytes.fromhex(said["contract"])] = state

    def _flow(self, stream: uuid.UUID, how: str, said: Payload) -> None:
        if how == "refused":
            return
        state, _ = self.executions.get(stream, ("new", None))
        if how in ("started", "continued"):
            self.runs[said["run_id"]] = (stream, said.get("generation", 0))
            if (how == "started") != (state == "new"):
                self.wrong.append(f"flow.{how} while {state}")
            if how == "started":
                self.flows[stream] = (said["realm"], said["flow"])
            if state != "denied":
                self.executions[stream] = ("open", None)
        elif state == "open":
            self.executions[stream] = (how, said["code"] or None)
        elif (state, said["code"]) != ("denied", "resume_denied"):
            self.wrong.append(f"flow.{how} while {state}")

    def _resume(self, stream: uuid.UUID, how: str) -> None:
        if how == "denied":
            if self.executions[stream][0] != "open":
                self.wrong.append(f"resume.denied while {self.executions[stream][0]}")
            self.executions[stream] = ("denied", "resume_denied")
            self.turns.append((stream, "resume_denied"))
            self.wakes.append((stream, "denied"))

    def _approval(self, stream: uuid.UUID, how: str, said: Payload, leaf: bytes) -> None:
        approval = said["approval"]
        if how == "requested":
            self.approvals[approval] = "pending"
            self.asked[approval] = bytes.fromhex(said["step_key"])
        elif how in ("vote", "decided"):
            self._while(how, approval, "pending")
            self.decisions.append((approval, said["decided_by"], said["verdict"], leaf))
            if how == "decided":
                verdict = {"approve": "approved", "reject": "rejected"}
                self.approvals[approval] = verdict[said["verdict"]]
                self.wakes.append((stream, approval))
        elif how == "revoked":
            self._while(how, approval, "approved")
            self.approvals[approval] = how
            self.wakes += [(stream, approval)] * said["woken"]
        elif how in ("expired", "withdrawn"):
            self.approvals[approval] = how
            if said.get("limit") == "decide_by":
                self.unheard.add(approval)  # told by a wake-up only if nobody had looked
            if said.get("by"):
                self.wakes.append((stream, approval))

    def _while(self, how: str, approval: str, state: str) -> None:
        if self.approvals[approval] != state:
            self.wrong.append(f"approval.{how} while {self.approvals[approval]}")

    def _step(self, stream: uuid.UUID, how: str, said: Payload) -> None:
        if how in ("injected", "evicted", "refused"):
            if said.get("code") == "frozen":
                self.told.append((said["freeze"], bytes.fromhex(said["step_key"])))
            return  # they change nothing else
        key, token = bytes.fromhex(said["step_key"]), said["token"]
        held, holder = self.claims.get(key, (0, None))
        attempt = uuid.UUID(said["attempt"])
        if how in ("claimed", "taken_over"):
            if token != held + 1 or (how == "claimed") != (holder is None):
                self.wrong.append(f"step.{how} with token {token} after {held}, held by {holder}")
            if self._frozen(stream):
                self.wrong.append(f"step.{how} while frozen")
            self.claims[key] = (token, attempt)
        else:
            if (held, holder) != (token, attempt):
                self.wrong.append(f"step.{how} by somebody who does not hold the step")
            if how == "executed":
                self._executed(key, said, attempt, token)
            else:
                self.claims[key] = (held, None)
                if said["terminal"]:
                    self.failures.add((key, said["round"]))

    def _executed(self, key: bytes, said: Payload, attempt: uuid.UUID, token: int) -> None:
        if key in self.outcomes:
            self.wrong.append("step.executed twice")
        self.outcomes[key] = (bytes.fromhex(said["outcome_digest"]), attempt, token)
        for approval, asked in self.asked.items():
            if asked == key and self.approvals[approval] == "approved":
                self.approvals[approval] = "used"

    def _frozen(self, stream: uuid.UUID) -> bool:
        realm, flow = self.flows[stream]
        standing = [f[:2] for f in self.freezes.values() if f[-1] is None]
        return (realm, flow) in standing or (realm, "") in standing

    def _freeze(self, how: str, said: Payload, leaf: bytes) -> None:
        row = self.freezes.get(said["freeze"])
        if how == "set":
            self.freezes[said["freeze"]] = (said["realm"], said["flow"], said["by"], leaf, None)
        elif row is None or row[-1] is not None:
            self.wrong.append(f"freeze.lifted while {row}")
        else:
            self.freezes[said["freeze"]] = (*row[:-1], said["by"])

    def _role(self, how: str, said: Payload) -> None:
        grant = (said["realm"], said["actor"], said["role"])
        if (how == "granted") == (grant in self.grants):
            self.wrong.append(f"role.{how} twice: {grant}")
        self.grants ^= {grant}

    def expected(self, name: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table, however this keeps them."""
        kept = getattr(self, name)
        if isinstance(kept, dict):
            return Counter(_flat(key) + _flat(value) for key, value in kept.items())
        return Counter(kept)


def _flat(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


async def differences(db: Database) -> list[str]:
    """Everything in which tables and entries differ, in words; empty when all is well."""
    async with db.snapshot() as conn:
        return await differences_seen(conn)


async def differences_seen(conn: Connection) -> list[str]:
    """As `differences`, in a transaction of the caller's."""
    books = Books()
    cursor = await conn.execute(_ENTRIES)
    async for stream, kind, body, leaf in cursor:
        said = canonical.loads(body)
        assert isinstance(said, dict)
        books.write(stream, kind, said, leaf)
    found = list(books.wrong)
    for name, query in _TABLES.items():
        stored = Counter(await (await conn.execute(query)).fetchall())
        if name == "wakes":
            stored = Counter({r: n for r, n in stored.items() if r[1] not in books.unheard})
        expected = books.expected(name)
        found += [f"{name}: only in the table: {row}" for row in stored - expected]
        found += [f"{name}: only in the entries: {row}" for row in expected - stored]
    return found


async def fingerprint(conn: Connection) -> str:
    """One digest over every row of every table of the schema."""
    digest = hashlib.sha256()
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'governance' ORDER BY 1"
    for (table,) in await (await conn.execute(tables)).fetchall():
        rows = sql.SQL("SELECT t::text FROM governance.{} t ORDER BY 1")
        cursor = await conn.execute(rows.format(sql.Identifier(table)))
        digest.update(repr((table, await cursor.fetchall())).encode())
    return digest.hexdigest()
