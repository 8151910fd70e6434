"""The Python door: what people and administrators do, each in one transaction of its own."""

from __future__ import annotations

import os
import uuid
from types import TracebackType
from typing import Final, Self

from governance import (
    administration,
    approvals,
    decisions,
    eligibility,
    executions,
    freezes,
    lookup,
    turns,
)
from governance.approvals import Approval
from governance.contracts import FlowContract
from governance.db import Connection, Database
from governance.db.statements import Row
from governance.decisions import Decider
from governance.eligibility import Eligibility
from governance.errors import (
    AlreadyDecided,
    ConfigurationError,
    ContractUnknown,
    DecisionRefused,
)
from governance.names import ApprovalState, Verdict
from governance.rules.barrier import matching
from governance.rules.decision import Accepted
from governance.turns import Turn

DATABASE_VARIABLE: Final = "GOVERNANCE_DATABASE_URL"
"""Environment variable that names the database where the caller does not."""


class GovernanceClient:
    """Approvals, roles and contracts of one realm.

    Every method raises `Unavailable` if the database cannot be used now and `ConfigurationError`
    if its schema does not fit this release or the login lacks a role. Who acts is passed in: it is
    the caller who has to know it. `submitted_by` is whom the caller itself saw, where that is not
    the same (`os:ana@host`); it is recorded beside the person.

    Args:
        database_url: A libpq connection string or URI; by default what `GOVERNANCE_DATABASE_URL`
            says.
        realm: The trust domain.

    Raises:
        ConfigurationError: No database is named, or its address is malformed.
    """

    def __init__(self, database_url: str | None = None, realm: str = "default") -> None:
        """Keep the settings; nothing is opened."""
        url = database_url or os.environ.get(DATABASE_VARIABLE)
        if not url:
            raise ConfigurationError(
                "No database is named.",
                hint=f"Set {DATABASE_VARIABLE} to its address, as in "
                "postgresql://user@host:5432/database.",
            )
        self.database: Final = Database(url, max_size=4)
        self.realm: Final = realm

    async def __aenter__(self) -> Self:
        """The client itself; the first call opens the connection."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Close every connection. Safe to repeat."""
        await self.database.close()

    # ---------------------------------------------------------------- approvals

    async def list_approvals(
        self,
        *,
        state: ApprovalState | None = ApprovalState.PENDING,
        role: str | None = None,
        limit: int = 100,
    ) -> list[Row]:
        """Approvals, oldest first: those that wait, or in another state, or (None) in any."""
        async with self.database.reading() as conn:
            return await approvals.list_approvals(
                conn, self.realm, state=state, role=role, limit=limit
            )

    async def find_approval(self, text: str) -> uuid.UUID:
        """The approval whose id this is, or begins with. Raises like `lookup.find_approval`."""
        async with self.database.reading() as conn:
            return await lookup.find_approval(conn, self.realm, text)

    async def show_approval(self, approval: uuid.UUID) -> Approval:
        """All that people may see of one approval.

        Raises:
            ApprovalUnknown: There is no such approval in this realm.
        """
        async with self.database.reading() as conn:
            return await approvals.get(conn, self.realm, approval)

    async def eligibility(self, approval: uuid.UUID, person: str) -> Eligibility:
        """Whether this person could approve now; nothing is recorded.

        Raises:
            ApprovalUnknown: There is no such approval in this realm.
        """
        async with self.database.reading() as conn:
            return await eligibility.eligibility(conn, self.realm, approval, person)

    async def approve(
        self,
        approval: uuid.UUID,
        decider: Decider,
        reason: str = "",
        *,
        digest: bytes | None = None,
    ) -> Accepted:
        """Approve; with nobody missing, the workflow is woken and goes on if its actor still may.

        Args:
            approval: Which one.
            decider: Who decides; their roles are read in the deciding transaction.
            reason: Why.
            digest: The input digest the decider saw; with another one nothing is decided.

        Returns:
            With which roles it counts, and how many approvers are missing after it.

        Raises:
            DecisionRefused: Not by this person, or not now; the refusal is on the record.
            ApprovalUnknown: There is no such approval in this realm.
        """
        return await self._decide(approval, Verdict.APPROVE, decider, reason, digest)

    async def reject(
        self,
        approval: uuid.UUID,
        decider: Decider,
        reason: str,
        *,
        digest: bytes | None = None,
    ) -> None:
        """Reject: the step does not run. Arguments and errors as for `approve`."""
        await self._decide(approval, Verdict.REJECT, decider, reason, digest)

    async def withdraw(self, approval: uuid.UUID, decider: Decider, reason: str = "") -> None:
        """Take a request back, as the person for whom the workflow was started.

        Raises:
            DecisionRefused: Somebody else asked for it, or it is not pending any more.
            ApprovalUnknown: There is no such approval in this realm.
        """
        async with self.database.transaction() as conn:
            refusal = await decisions.withdraw_as(conn, self.realm, approval, decider, reason)
        if refusal is not None:
            raise refusal

    async def revoke(self, approval: uuid.UUID, decider: Decider, reason: str) -> None:
        """Take a decision back before its step begins: once this returns, it does not begin.

        Args:
            approval: Which one.
            decider: Who revokes: somebody who approved it, or who could have.
            reason: Why.

        Raises:
            DecisionRefused: Not by this person, or too late; the refusal is on the record.
            ApprovalUnknown: There is no such approval in this realm.
        """
        async with self.database.transaction() as conn:
            refusal = await decisions.revoke(conn, self.realm, approval, decider, reason)
        if refusal is not None:
            raise refusal

    # ---------------------------------------------------------------- roles

    async def grant_role(
        self, actor: str, role: str, by: str, reason: str = "", *, submitted_by: str = ""
    ) -> bool:
        """Grant a role; False if the actor holds it already.

        Raises:
            AdministrationRefused: `by` is the actor.
        """
        async with self.database.transaction() as conn:
            return await administration.grant_role(
                conn, self.realm, actor, role, by, reason, submitted_by=submitted_by
            )

    async def revoke_role(
        self, actor: str, role: str, by: str, reason: str = "", *, submitted_by: str = ""
    ) -> None:
        """Revoke a role: once this returns, no step of the actor begins on it.

        Raises:
            RoleUnknown: The actor does not hold it.
        """
        async with self.database.transaction() as conn:
            await administration.revoke_role(
                conn, self.realm, actor, role, by, reason, submitted_by=submitted_by
            )

    async def list_roles(self, actor: str | None = None) -> list[Row]:
        """Who holds which role, since when, by whose grant and why."""
        async with self.database.reading() as conn:
            return await administration.list_roles(conn, self.realm, actor)

    async def check_role(self, role: str) -> None:
        """See that somebody holds this role or a contract names it. Nothing else asks for that.

        Raises:
            RoleUnknown: Neither; the message has what it may have been meant to be.
        """
        async with self.database.reading() as conn:
            await lookup.check_role(conn, self.realm, role)

    # ---------------------------------------------------------------- contracts

    async def register_contract(
        self, contract: FlowContract, by: str, *, submitted_by: str = ""
    ) -> bool:
        """Make a contract version known; False if it was before."""
        async with self.database.transaction() as conn:
            return await administration.register_contract(
                conn, self.realm, contract, by, submitted_by=submitted_by
            )

    async def activate_contract(self, digest: bytes, by: str, *, submitted_by: str = "") -> bool:
        """Make a registered version the one that new executions take; False if it was before.

        Raises:
            ContractUnknown: No such version is registered.
            AdministrationRefused: `by` registered it.
        """
        async with self.database.transaction() as conn:
            return await administration.activate_contract(
                conn, self.realm, digest, by, submitted_by=submitted_by
            )

    async def list_contracts(self, flow: str | None = None) -> list[Row]:
        """Registered versions, by flow and age."""
        async with self.database.reading() as conn:
            return await administration.list_contracts(conn, self.realm, flow)

    async def find_contract(self, text: str) -> bytes:
        """The digest that this is, or begins with. Raises like `lookup.find_contract_digest`."""
        async with self.database.reading() as conn:
            return await lookup.find_contract_digest(conn, self.realm, text)

    async def show_contract(self, digest: bytes) -> Row:
        """A registered version: digest, flow, body, state, who and when.

        Raises:
            ContractUnknown: No such version is registered.
        """
        async with self.database.reading() as conn:
            found = await administration.find_contract(conn, self.realm, digest)
        if found is None:
            raise ContractUnknown(
                f'No contract {digest.hex()[:12]}… is registered in realm "{self.realm}".',
                hint="`governance contracts list` shows those that are.",
            )
        return found

    # ---------------------------------------------------------------- freezes

    async def freeze(
        self, flow: str | None, by: str, reason: str, *, submitted_by: str = ""
    ) -> bool:
        """Stop a flow, or (None) the whole realm: once this returns, no step of it begins.

        Returns:
            False if it is frozen already.

        Raises:
            AdministrationRefused: There is no reason.
        """
        async with self.database.transaction() as conn:
            return await freezes.freeze(
                conn, self.realm, flow, by, reason, submitted_by=submitted_by
            )

    async def unfreeze(
        self, flow: str | None, by: str, reason: str = "", *, submitted_by: str = ""
    ) -> None:
        """Let a flow, or (None) the realm, go on.

        Raises:
            FreezeUnknown: It is not frozen.
            AdministrationRefused: `by` set the freeze.
        """
        async with self.database.transaction() as conn:
            await freezes.unfreeze(conn, self.realm, flow, by, reason, submitted_by=submitted_by)

    async def list_freezes(self) -> list[Row]:
        """What is frozen, oldest first; a row without a flow is of the whole realm."""
        async with self.database.reading() as conn:
            return await freezes.list_freezes(conn, self.realm)

    # ---------------------------------------------------------------- what happened

    async def executions(self, workflow_id: str) -> list[Row]:
        """The executions of a workflow id, newest first; none if it was never governed."""
        async with self.database.reading() as conn:
            return await executions.find_executions(conn, self.realm, workflow_id)

    async def timeline(self, execution: uuid.UUID) -> list[Row]:
        """All entries of an execution: seq, type, at, leaf, body, payload, idx (None: unsealed)."""
        async with self.database.reading() as conn:
            return await executions.fetch_timeline(conn, execution)

    async def turns(self, execution: uuid.UUID) -> list[Turn]:
        """What the actor was told of an execution, in order."""
        async with self.database.reading() as conn:
            return await turns.list_turns(conn, execution)

    # ---------------------------------------------------------------- inside

    async def _decide(
        self,
        approval: uuid.UUID,
        verdict: Verdict,
        decider: Decider,
        reason: str,
        digest: bytes | None,
    ) -> Accepted:
        said = (verdict, decider.id, decider.submitted_by, decider.method, reason)
        tries = 0

        async def work(conn: Connection) -> DecisionRefused | Accepted:
            nonlocal tries
            tries += 1
            told = await decisions.vote(
                conn, self.realm, approval, verdict, decider, reason, digest
            )
            if tries > 1 and isinstance(told, AlreadyDecided):
                found = await approvals.get(conn, self.realm, approval)
                for decision in found.decisions:
                    if _said(decision) == said:
                        raise _AnswerLost(_accepted(found, decision))
            return told

        try:
            told = await self.database.run(work)
        except _AnswerLost as lost:
            return lost.accepted
        if isinstance(told, DecisionRefused):
            raise told
        return told


class _AnswerLost(Exception):
    """The decision is on record: it was the answer to its COMMIT that got lost.

    Raised to roll back the record of a refusal that nobody has earned.
    """

    def __init__(self, accepted: Accepted) -> None:
        """Keep what that answer was."""
        super().__init__()
        self.accepted: Final = accepted


def _accepted(found: Approval, decision: Row) -> Accepted:
    roles = matching(found.rule.roles, decision["roles_held"])
    decided = found.state is not ApprovalState.PENDING
    return Accepted(roles, found.rule.needed, 0 if decided else found.tally.missing)


def _said(decision: Row) -> tuple[str, ...]:
    names = ("verdict", "decided_by", "submitted_by", "method", "reason")
    return tuple(decision[name] for name in names)
