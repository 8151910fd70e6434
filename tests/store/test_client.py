"""The Python door: one transaction a call, refusals raised after they are on record."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator

import pytest

from governance.client import GovernanceClient
from governance.decisions import Decider
from governance.errors import (
    ActorMustNotDecide,
    AlreadyDecided,
    ApprovalUnknown,
    ApprovalWithdrawn,
    BarrierNotMet,
    ConfigurationError,
    DecisionRefused,
    DigestMismatch,
    ReasonRequired,
)
from governance.names import ApprovalState
from governance.rules.decision import Accepted
from tests.proxy import Loss, Proxy
from tests.store import scenario as s

ANA = Decider("ana", "api", "session 7")
EVA = Decider("eva", "api", "session 8")


@pytest.fixture
async def client(dsn: str) -> AsyncGenerator[GovernanceClient]:
    """A client of the scenario's realm."""
    async with GovernanceClient(dsn, s.REALM) as opened:
        yield opened


@pytest.fixture
async def approval(client: GovernanceClient) -> uuid.UUID:
    """A payment of olga's that waits."""
    await s.prepare(client.database)
    run = await s.opened(client.database)
    return await s.pending(client.database, run, s.call(run))


async def entries(client: GovernanceClient) -> list[tuple[str, dict[str, object]]]:
    """The story of the scenario's workflow."""
    [execution] = await client.executions("w")
    rows = await client.timeline(execution["id"])
    return [(row["type"], json.loads(row["payload"])) for row in rows]


async def kinds(client: GovernanceClient) -> list[str]:
    return [kind for kind, _ in await entries(client)]


# ------------------------------------------------------------------------ approvals


async def test_what_waits_is_listed_shown_and_approved(
    client: GovernanceClient, approval: uuid.UUID
) -> None:
    [row] = await client.list_approvals()
    assert (row["id"], row["state"]) == (approval, "pending")
    found = await client.show_approval(approval)
    assert (found.title, found.requested_by, found.decisions) == ("Pay 100 EUR to Acme", "olga", ())
    await client.approve(approval, ANA, "fine", digest=found.input_digest)
    assert await client.list_approvals() == []
    after = await client.show_approval(approval)
    assert after.state is ApprovalState.APPROVED
    [decision] = after.decisions
    assert (decision["decided_by"], decision["submitted_by"]) == ("ana", "session 7")


@pytest.mark.parametrize(
    ("decider", "reason", "error"),
    [
        (Decider("olga"), "x", ActorMustNotDecide),
        (Decider("zoe"), "x", BarrierNotMet),
        (ANA, " ", ReasonRequired),
    ],
)
async def test_a_refusal_is_raised_and_on_record(
    client: GovernanceClient,
    approval: uuid.UUID,
    decider: Decider,
    reason: str,
    error: type[DecisionRefused],
) -> None:
    with pytest.raises(error):
        await client.reject(approval, decider, reason)
    kind, said = (await entries(client))[-1]
    assert (kind, said["code"], said["refused"]) == ("approval.refused", error.code, decider.id)


async def test_another_digest_is_refused(client: GovernanceClient, approval: uuid.UUID) -> None:
    with pytest.raises(DigestMismatch):
        await client.approve(approval, ANA, digest=bytes(32))
    assert (await client.show_approval(approval)).decisions == ()


async def test_the_second_is_told_by_whom(client: GovernanceClient, approval: uuid.UUID) -> None:
    await client.reject(approval, ANA, "twice")
    for decide in (
        client.approve(approval, EVA),
        client.approve(approval, ANA),
        client.reject(approval, ANA, "twice"),
        client.withdraw(approval, Decider("olga")),
    ):
        with pytest.raises(AlreadyDecided, match="rejected already by ana on"):
            await decide


async def test_who_asked_withdraws(client: GovernanceClient, approval: uuid.UUID) -> None:
    with pytest.raises(DecisionRefused, match="Only olga"):
        await client.withdraw(approval, ANA)
    await client.withdraw(approval, Decider("olga"), "a mistake")
    assert (await client.show_approval(approval)).state is ApprovalState.WITHDRAWN
    with pytest.raises(ApprovalWithdrawn):
        await client.withdraw(approval, Decider("olga"))


async def test_an_approval_of_another_realm_is_unknown(dsn: str, approval: uuid.UUID) -> None:
    async with GovernanceClient(dsn, "other") as other:
        for attempt in (
            other.show_approval(approval),
            other.eligibility(approval, "ana"),
            other.approve(approval, ANA),
            other.reject(approval, ANA, "x"),
            other.withdraw(approval, Decider("olga")),
            other.find_approval(approval.hex),
        ):
            with pytest.raises(ApprovalUnknown):
                await attempt


async def test_eligibility_only_looks(client: GovernanceClient, approval: uuid.UUID) -> None:
    before = await kinds(client)
    ana = await client.eligibility(approval, "ana")
    assert (ana.roles, ana.refusal) == (("approver",), None)
    assert isinstance((await client.eligibility(approval, "olga")).refusal, ActorMustNotDecide)
    assert isinstance((await client.eligibility(approval, "zoe")).refusal, BarrierNotMet)
    await client.approve(approval, ANA)
    assert isinstance((await client.eligibility(approval, "eva")).refusal, AlreadyDecided)
    assert await kinds(client) == [*before, "approval.decided"]


# ------------------------------------------------------------------------ a lost answer


@pytest.mark.parametrize("what", list(Loss))
async def test_a_decision_survives_a_lost_commit(
    proxy: Proxy, client: GovernanceClient, approval: uuid.UUID, what: Loss
) -> None:
    async with GovernanceClient(proxy.dsn, s.REALM) as behind:
        await behind.list_approvals()
        proxy.lose(what)
        await behind.approve(approval, ANA, "fine")
    assert proxy.lost == 1
    assert (await kinds(client))[-1] == "approval.decided"
    assert "approval.refused" not in await kinds(client)
    assert len((await client.show_approval(approval)).decisions) == 1


@pytest.mark.parametrize("what", list(Loss))
async def test_a_vote_survives_a_lost_commit(
    proxy: Proxy, client: GovernanceClient, what: Loss
) -> None:
    await s.prepare(client.database, s.contract(needed=2))
    run = await s.opened(client.database)
    approval = await s.pending(client.database, run, s.call(run))
    async with GovernanceClient(proxy.dsn, s.REALM) as behind:
        await behind.list_approvals()
        proxy.lose(what)
        assert await behind.approve(approval, ANA, "fine") == Accepted(("approver",), 2, 1)
    assert (await kinds(client))[-1] == "approval.vote"
    assert len((await client.show_approval(approval)).decisions) == 1


async def test_a_lost_answer_does_not_turn_one_decision_into_another(
    proxy: Proxy, client: GovernanceClient, approval: uuid.UUID
) -> None:
    await client.approve(approval, ANA, "fine")
    async with GovernanceClient(proxy.dsn, s.REALM) as behind:
        await behind.list_approvals()
        proxy.lose(Loss.QUESTION)
        with pytest.raises(AlreadyDecided, match="approved already by ana"):
            await behind.reject(approval, ANA, "no")
    assert (await kinds(client))[-1] == "approval.refused"


# ------------------------------------------------------------------------ opening


async def test_the_environment_names_the_database(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOVERNANCE_DATABASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="GOVERNANCE_DATABASE_URL"):
        GovernanceClient()
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", dsn)
    async with GovernanceClient() as client:
        assert client.realm == "default"
        assert await client.list_approvals() == []


async def test_nothing_is_known_of_a_workflow_that_was_never_governed(
    client: GovernanceClient,
) -> None:
    assert await client.executions("nobody") == []
    assert await client.timeline(uuid.uuid4()) == []
    assert await client.turns(uuid.uuid4()) == []
