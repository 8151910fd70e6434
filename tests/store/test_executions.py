"""Runs and executions: which run belongs where, under which contract, for whom."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from governance import administration, canonical, executions, steps
from governance.db import Database
from governance.errors import (
    ActorMissing,
    ExecutionUnknown,
    FlowNotActive,
    ResumeDenied,
    StepRefused,
)
from governance.executions import Actor, Run, find_run, open_run
from governance.names import ExecutionState
from governance.rules import step_key as keys
from tests.store import scenario as s

# ---------------------------------------------------------------- open


async def test_open_gives_the_same_answer_however_often_it_is_asked(world: Database) -> None:
    facts = s.facts()
    first = await s.opened(world, facts)
    assert (first.actor, first.generation, first.state) == (s.OLGA, 0, ExecutionState.OPEN)
    assert first.contract == s.contract()
    assert await s.opened(world, facts) == first
    assert await s.opened(world, facts, actor="somebody else") == first
    async with world.reading() as conn:
        assert await find_run(conn, s.REALM, facts.run_id) == first
        assert await find_run(conn, "another realm", facts.run_id) is None
    assert await s.entry_types(world, first.execution) == ["flow.started"]


async def opened_at_once(db: Database) -> list[Run | BaseException]:
    """What 20 callers are told that open one run at once."""
    facts = s.facts()
    return await s.all_at_once(db, [s.opened(db, facts) for _ in range(20)])


async def test_a_run_opened_at_once_by_many_has_one_execution(world: Database) -> None:
    [first, *others] = await opened_at_once(world)
    assert isinstance(first, Run)
    assert others == [first] * 19
    assert await s.rows(world, "SELECT count(*) FROM governance.execution") == [(1,)]


async def test_without_the_lock_opening_at_once_fails(
    world: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    s.sabotage(monkeypatch, executions, lock_run="SELECT %(realm)s::text, %(run_id)s::text")
    told = await opened_at_once(world)
    assert any(isinstance(one, psycopg.errors.UniqueViolation) for one in told)


async def test_the_start_says_on_what_it_rests(world: Database) -> None:
    run = await s.opened(world)
    [(payload,)] = await s.rows(
        world,
        "SELECT p.body FROM governance.payload p JOIN governance.entry e ON e.id = p.entry "
        "WHERE e.stream = %s",
        run.execution,
    )
    said = canonical.loads(payload)
    assert isinstance(said, dict)
    assert said["actor"] == s.OLGA
    assert said["actor_source"] == "attested"
    assert said["contract"] == s.contract().digest.hex()
    assert [(held["role"], held["granted_by"]) for held in _list(said["roles"])] == [
        ("operator", "ada")
    ]


def _list(value: Any) -> list[dict[str, str]]:
    assert isinstance(value, list)
    return value


# ---------------------------------------------------------------- refused


async def refused_runs(db: Database) -> list[Any]:
    """The refusals on record, in order."""
    found = await s.rows(
        db,
        "SELECT st.name, p.body FROM governance.entry e "
        "JOIN governance.payload p ON p.entry = e.id JOIN governance.stream st ON st.id = e.stream "
        "WHERE e.type = 'flow.refused' AND st.kind = 'contract' ORDER BY e.id",
    )
    said = [(name, canonical.loads(body)) for name, body in found]
    return [(name, body["run_id"], body["code"]) for name, body in said if isinstance(body, dict)]


async def refused(db: Database, facts: executions.RunFacts, actor: str | None) -> StepRefused:
    who = None if actor is None else Actor(actor)
    answer = await db.run(lambda conn: open_run(conn, facts, who))
    assert isinstance(answer, StepRefused)
    return answer


async def test_without_an_actor_nothing_starts_and_that_is_on_record(world: Database) -> None:
    facts = s.facts()
    assert type(await refused(world, facts, None)) is ActorMissing
    assert await refused_runs(world) == [(s.FLOW, facts.run_id, "actor_missing")]
    assert await s.rows(world, "SELECT FROM governance.execution") == []
    assert await s.rows(world, "SELECT FROM governance.run") == []


async def test_without_an_active_contract_nothing_starts(world: Database) -> None:
    elsewhere, unknown = s.facts(realm="elsewhere"), s.facts(flow="Other")
    assert type(await refused(world, elsewhere, s.OLGA)) is FlowNotActive
    assert type(await refused(world, unknown, s.OLGA)) is FlowNotActive
    assert await refused_runs(world) == [
        (s.FLOW, elsewhere.run_id, "flow_not_active"),
        ("Other", unknown.run_id, "flow_not_active"),
    ]


async def test_a_contract_that_is_only_registered_is_not_taken(db: Database) -> None:
    async with db.transaction() as conn:
        await administration.register_contract(conn, s.REALM, s.contract(), "ada")
    assert type(await refused(db, s.facts(), s.OLGA)) is FlowNotActive


async def test_a_run_after_an_unknown_one_is_not_opened(world: Database) -> None:
    facts = s.facts(original_run_id="never seen")
    with pytest.raises(ExecutionUnknown, match="never seen"):
        await s.opened(world, facts)
    assert await s.rows(world, "SELECT FROM governance.run") == []


# ---------------------------------------------------------------- run → execution

A, B, NEXT = "run-a", "run-b", "run-next"
"""A is the first run of an execution, B the one it continued as."""


@pytest.mark.parametrize(
    ("how", "same", "generation"),
    [
        ({"attempt": 2, "continued_run_id": A}, True, 0),
        ({"attempt": 3, "continued_run_id": B}, True, 1),
        ({"continued_run_id": B, "continued_by_code": True}, True, 2),
        ({"attempt": 2, "continued_run_id": B, "continued_by_code": True}, True, 1),
        ({"original_run_id": A}, True, 0),
        ({"original_run_id": B}, True, 1),
        ({"original_run_id": B, "continued_run_id": A, "continued_by_code": True}, True, 1),
        ({"original_run_id": A, "attempt": 2, "continued_run_id": B}, True, 0),
        ({}, False, 0),
        ({"continued_run_id": B}, False, 0),
        ({"original_run_id": NEXT}, False, 0),
        ({"original_run_id": NEXT, "continued_run_id": B}, False, 0),
        ({"attempt": 2}, False, 0),
    ],
    ids=[
        "retry", "retry of what continued", "continues as new", "retry with its header",
        "reset", "reset of what continued", "that with its header", "reset of a retry",
        "id reused", "cron tick", "a first run", "a cron tick's first run", "attempt alone",
    ],
)  # fmt: skip
async def test_which_execution_a_run_belongs_to(
    world: Database, how: dict[str, Any], same: bool, generation: int
) -> None:
    first = await s.opened(world, s.facts(A))
    await s.opened(world, s.facts(B, continued_run_id=A, continued_by_code=True))
    run = await s.opened(world, s.facts(NEXT, **how))
    assert (run.execution == first.execution, run.generation) == (same, generation)
    last = (await s.entry_types(world, run.execution))[-1]
    assert last == ("flow.continued" if same else "flow.started")


async def test_a_reset_cron_tick_stays_with_its_tick(world: Database) -> None:
    first = await s.opened(world, s.facts(A))
    tick = await s.opened(world, s.facts("tick", continued_run_id=A))
    reset = await s.opened(world, s.facts("r", original_run_id="tick", continued_run_id=A))
    assert first.execution != tick.execution == reset.execution


# ---------------------------------------------------------------- what a later run inherits


async def paid(db: Database, run: Run) -> steps.Call:
    """A payment that was approved and made."""
    pay = s.call(run)
    await s.approved(db, run, pay)
    assert await s.finish(db, run, pay, await s.permitted(db, run, pay)) is None
    return pay


async def paid_again_after_a_reset(db: Database) -> object:
    run = await s.opened(db)
    await paid(db, run)
    later = await s.opened(db, s.facts(original_run_id=run.run_id))
    return await s.begin(db, later, s.call(later))


async def test_after_a_reset_the_outcome_is_injected(world: Database) -> None:
    assert await paid_again_after_a_reset(world) == steps.Injected(b"paid")


async def test_a_key_with_the_run_in_it_would_not_find_the_outcome(
    world: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = s.call

    def call(run: Run, *args: Any, **given: Any) -> steps.Call:
        of_run = uuid.uuid5(run.execution, run.run_id)
        asked = right(run, *args, **given)
        key = keys.step_key(of_run, run.generation, asked.name, asked.binds_digest, asked.n)
        return replace(asked, key=key)

    monkeypatch.setattr(s, "call", call)
    again = await paid_again_after_a_reset(world)
    assert isinstance(again, StepRefused)


async def test_after_continue_as_new_the_same_call_is_a_new_step(world: Database) -> None:
    run = await s.opened(world)
    await paid(world, run)
    later = await s.opened(world, s.facts(continued_run_id=run.run_id, continued_by_code=True))
    assert isinstance(await s.begin(world, later, s.call(later)), StepRefused)
    assert (await s.ask(world, later, s.call(later)))[0] == "pending"


async def test_the_actor_stays_the_original_one(world: Database) -> None:
    run = await s.opened(world)
    for later in (
        await s.opened(world, s.facts(original_run_id=run.run_id), actor=s.EVA),
        await s.opened(world, s.facts(attempt=2, continued_run_id=run.run_id), actor=s.EVA),
    ):
        assert later.actor == s.OLGA
    await s.grant(world, s.EVA, "operator")
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, later, s.call(later, "notify")), ResumeDenied)


async def test_the_contract_stays_the_pinned_one(world: Database) -> None:
    old = await s.opened(world)
    newer = s.contract("2")
    await s.activate(world, newer)
    new = await s.opened(world)
    assert (old.contract, new.contract) == (s.contract(), newer)
    reset = await s.opened(world, s.facts(original_run_id=old.run_id))
    assert reset.contract_digest == old.contract_digest != new.contract_digest
    async with world.reading() as conn:
        assert await find_run(conn, s.REALM, old.run_id) == old
    await paid(world, reset)


async def test_a_denied_execution_stays_denied_for_every_later_run(world: Database) -> None:
    run = await s.opened(world)
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, run, s.call(run, "notify")), ResumeDenied)
    await s.grant(world, s.OLGA, "operator")
    later = await s.opened(world, s.facts(original_run_id=run.run_id))
    assert later.state is ExecutionState.DENIED
    assert isinstance(await s.begin(world, later, s.call(later, "notify")), ResumeDenied)
    assert (await s.ask(world, later, s.call(later)))[0] == "denied"
    assert not await s.close(world, later, ExecutionState.COMPLETED)
    assert await s.state_of(world, run) == ("denied", "resume_denied")
    assert (await s.entry_types(world, run.execution)).count("flow.failed") == 1
    another = await s.opened(world)
    assert another.state is ExecutionState.OPEN


# ---------------------------------------------------------------- the end


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_the_end_of_a_run_ends_the_execution_once(world: Database, state: str) -> None:
    run = await s.opened(world)
    waiting = await s.pending(world, run, s.call(run))
    code = "terminated" if state == "failed" else ""
    assert await s.close(world, run, ExecutionState(state), code)
    assert not await s.close(world, run, ExecutionState(state), code)
    assert await s.state_of(world, run) == (state, code or None)
    assert await s.approval_state(world, waiting) == "withdrawn"
    assert (await s.entry_types(world, run.execution))[-2:] == [
        "approval.withdrawn",
        f"flow.{state}",
    ]


async def test_a_later_run_opens_an_ended_execution_again(world: Database) -> None:
    run = await s.opened(world)
    await s.close(world, run, ExecutionState.FAILED, "SomeError")
    later = await s.opened(world, s.facts(attempt=2, continued_run_id=run.run_id))
    assert later.state is ExecutionState.OPEN
    assert await s.state_of(world, run) == ("open", None)


async def test_nothing_is_left_to_send_when_an_execution_has_ended(world: Database) -> None:
    denied, decided = await s.opened(world), await s.opened(world)
    await s.approved(world, decided, s.call(decided))
    await s.close(world, decided, ExecutionState.COMPLETED)
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, denied, s.call(denied, "notify")), ResumeDenied)
    await s.close(world, denied, ExecutionState.FAILED, "resume_denied")
    assert await s.woken(world) == []


async def test_executions_of_a_workflow_id_newest_first(world: Database) -> None:
    first, second = await s.opened(world), await s.opened(world)
    await s.opened(world, s.facts(workflow_id="another"))
    async with world.reading() as conn:
        found = await executions.find_executions(conn, s.REALM, "w")
        timeline = await executions.fetch_timeline(conn, second.execution)
    assert [row["id"] for row in found] == [second.execution, first.execution]
    assert [(row["seq"], row["type"], row["idx"]) for row in timeline] == [
        (1, "flow.started", None)
    ]
