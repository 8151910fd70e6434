"""I1, I3, I4: what begin refuses, one holder at a time, one outcome for everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from governance import approvals, canonical, executions, reading, steps
from governance.db import Database
from governance.errors import (
    ApprovalMismatch,
    ApprovalMissing,
    ApprovalNotUsable,
    ApprovalRejected,
    ResumeDenied,
    StepRefused,
)
from governance.executions import Run
from governance.names import ExecutionState, Verdict
from governance.roles import directory
from governance.steps import Busy, Call, Evicted, Injected, Permit
from governance.turns import list_turns
from tests.store import scenario as s

Setting = Callable[[Database, Run, Call], Awaitable[object]]

# ---------------------------------------------------------------- I1: refused


async def nobody_was_asked(db: Database, run: Run, pay: Call) -> None:
    pass


async def nobody_decided_in_time(db: Database, run: Run, pay: Call) -> None:
    await s.let_limit_pass(db, await s.pending(db, run, pay), "decide_by")


async def expired(db: Database, run: Run, pay: Call) -> None:
    await nobody_decided_in_time(db, run, pay)
    assert (await s.ask(db, run, pay))[0] == "expired"


async def rejected(db: Database, run: Run, pay: Call) -> None:
    await s.decide(db, await s.pending(db, run, pay), verdict=Verdict.REJECT)


async def withdrawn(db: Database, run: Run, pay: Call) -> None:
    await s.pending(db, run, pay)
    await db.run(lambda conn: approvals.withdraw_step(conn, run, "pay", 1, "cancelled"))


async def other_input_approved(db: Database, run: Run, pay: Call) -> None:
    await s.approved(db, run, s.call(run, given=b"999 EUR to Mallory"))


async def another_step_approved(db: Database, run: Run, pay: Call) -> None:
    await s.approved(db, run, s.call(run, n=2))


async def too_late(db: Database, run: Run, pay: Call) -> None:
    await s.let_limit_pass(db, await s.approved(db, run, pay), "execute_by")


async def role_lost(db: Database, run: Run, pay: Call) -> None:
    await s.approved(db, run, pay)
    await s.revoke(db, s.OLGA, "operator")


async def execution_denied(db: Database, run: Run, pay: Call) -> None:
    await role_lost(db, run, pay)
    assert isinstance(await s.begin(db, run, s.call(run, "notify")), ResumeDenied)
    await s.grant(db, s.OLGA, "operator")


REFUSED: list[tuple[Setting, type[StepRefused]]] = [
    (nobody_was_asked, ApprovalMissing),
    (s.pending, ApprovalMissing),
    (nobody_decided_in_time, ApprovalMissing),
    (expired, ApprovalNotUsable),
    (rejected, ApprovalRejected),
    (withdrawn, ApprovalNotUsable),
    (other_input_approved, ApprovalMismatch),
    (another_step_approved, ApprovalMissing),
    (too_late, ApprovalNotUsable),
    (role_lost, ResumeDenied),
    (execution_denied, ResumeDenied),
]


async def begin_in(db: Database, setting: Setting) -> tuple[Run, Call, object]:
    run = await s.opened(db)
    pay = s.call(run)
    await setting(db, run, pay)
    return run, pay, await s.begin(db, run, pay)


@pytest.mark.parametrize(("setting", "refusal"), REFUSED)
async def test_begin_refuses_and_says_so_on_record(
    world: Database, setting: Setting, refusal: type[StepRefused]
) -> None:
    run, pay, begun = await begin_in(world, setting)
    assert type(begun) is refusal
    claimed = "SELECT token, holder, outcome FROM governance.step WHERE key = %s"
    assert await s.rows(world, claimed, pay.key) == [(0, None, None)]
    entries = await s.entry_types(world, run.execution)
    assert "step.claimed" not in entries
    assert entries.count("step.refused") == (2 if setting is execution_denied else 1)


ANYTHING_APPROVED = """
    SELECT gen_random_uuid() AS id, 'approved' AS state, key AS step_key, '' AS run_id, 1 AS round,
           NULL::timestamptz AS decide_by, NULL::timestamptz AS execute_by,
           NULL::text AS admitted_run, %(step)s::text, %(n)s::int
    FROM governance.step WHERE execution = %(execution)s
"""
EVERYBODY_OPERATES = """
    SELECT NULL::bytea AS head, 'operator' AS role, governance.clock() AS granted_at,
           'ada' AS granted_by,
           %(realm)s::text, %(actor)s::text
"""
EVERYTHING_IS_OPEN = "SELECT id, 'open' AS state FROM governance.execution WHERE id = %(execution)s"


async def test_without_the_check_each_of_these_would_begin(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await s.prepare(db)
    for setting, refusal in REFUSED:
        await s.grant(db, s.OLGA, "operator")
        run = await s.opened(db)
        pay = s.call(run)
        await setting(db, run, pay)
        with monkeypatch.context() as patch:
            if refusal is ResumeDenied:
                s.sabotage(patch, directory, fetch_roles=EVERYBODY_OPERATES)
                s.sabotage(patch, executions, lock_execution=EVERYTHING_IS_OPEN)
            else:
                assert isinstance(await s.begin(db, run, pay), refusal)  # its row is there now
                s.sabotage(patch, approvals, fetch_for_step=ANYTHING_APPROVED)
            assert isinstance(await s.begin(db, run, pay), Permit), setting


async def test_a_denial_ends_the_execution_and_tells(world: Database) -> None:
    run = await s.opened(world)
    waiting, pay = s.call(run, n=2), s.call(run)
    approval = await s.pending(world, run, waiting)
    await role_lost(world, run, pay)
    assert isinstance(await s.begin(world, run, pay), ResumeDenied)
    assert await s.state_of(world, run) == ("denied", "resume_denied")
    assert await s.approval_state(world, approval) == "withdrawn"
    assert (await s.entry_types(world, run.execution))[-4:] == [
        "step.refused",
        "approval.withdrawn",
        "resume.denied",
        "flow.failed",
    ]
    async with world.reading() as conn:
        [turn] = await list_turns(conn, run.execution)
    assert (turn.seq, turn.kind, turn.recipient) == (1, "resume_denied", s.OLGA)
    open_rows = "SELECT topic FROM governance.outbox WHERE execution = %s AND done_at IS NULL"
    assert await s.rows(world, open_rows, run.execution) == [("denied",)]


async def test_a_denial_is_told_once(world: Database) -> None:
    run = await s.opened(world)
    await s.revoke(world, s.OLGA, "operator")
    begun = await asyncio.gather(
        *(s.begin(world, run, s.call(run, "notify", n=n)) for n in range(1, 9))
    )
    assert {type(one) for one in begun} == {ResumeDenied}
    entries = await s.entry_types(world, run.execution)
    assert (entries.count("step.refused"), entries.count("flow.failed")) == (8, 1)


async def test_an_execution_that_ended_is_not_ended_again(world: Database) -> None:
    run = await s.opened(world)
    await s.close(world, run, ExecutionState.COMPLETED)
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, run, s.call(run, "notify")), ResumeDenied)
    assert await s.state_of(world, run) == ("completed", None)


# ---------------------------------------------------------------- one claim


async def test_a_step_that_may_run_names_its_claim(world: Database) -> None:
    run = await s.opened(world)
    pay = s.call(run)
    approval = await s.approved(world, run, pay)
    begun = await s.begin(world, run, pay)
    assert begun == Permit(1, approval)
    assert await s.begin(world, run, pay) == begun  # asked again: its answer was lost
    assert (await s.entry_types(world, run.execution)).count("step.claimed") == 1
    [(body,)] = await s.rows(
        world,
        "SELECT p.body FROM governance.payload p JOIN governance.entry e ON e.id = p.entry "
        "WHERE e.type = 'step.claimed'",
    )
    said = canonical.loads(body)
    assert isinstance(said, dict)
    assert (said["actor"], said["approval"], said["attempt"], said["token"]) == (
        s.OLGA, approval.hex, pay.attempt.hex, 1,
    )  # fmt: skip
    assert await s.finish(world, run, pay, 1) is None
    assert await s.approval_state(world, approval) == "used"


async def crowded(db: Database) -> list[s.Begun | BaseException]:
    """What 20 attempts are told that begin one step at once; its row is there already."""
    run = await s.opened(db)
    first = s.call(run, "notify")
    token = await s.permitted(db, run, first)
    await db.run(lambda conn: steps.fail(conn, run, first, token, code="E", failure=None))
    return await s.all_at_once(db, [s.begin(db, run, s.call(run, "notify")) for _ in range(20)])


async def test_of_many_attempts_one_may_run(world: Database) -> None:
    begun = await crowded(world)
    assert sum(isinstance(one, Permit) for one in begun) == 1
    busy = [one for one in begun if isinstance(one, Busy)]
    assert len(busy) == 19
    assert all(50 < one.seconds <= 60 for one in busy)


async def test_without_locks_many_may_run(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await s.prepare(db)
    for module, name in ((executions, "lock_execution"), (reading, "lock_step")):
        s.sabotage(monkeypatch, module, **{name: module._Q[name].replace("FOR NO KEY UPDATE", "")})
    for _ in range(20):
        begun = await crowded(db)
        if sum(isinstance(one, Permit) for one in begun) > 1:
            return
    raise AssertionError("nobody noticed")


async def test_after_the_lease_exactly_one_takes_over(world: Database) -> None:
    run = await s.opened(world)
    slow = s.call(run, "notify")
    token = await s.permitted(world, run, slow)
    await s.let_lease_run_out(world, slow.key)
    attempts = [s.call(run, "notify") for _ in range(20)]
    begun = await s.all_at_once(world, [s.begin(world, run, one) for one in attempts])
    [winner] = [one for one, got in zip(attempts, begun, strict=True) if isinstance(got, Permit)]
    assert sum(isinstance(got, Busy) for got in begun) == 19
    assert await s.finish(world, run, slow, token, b"late") == Evicted()
    assert await s.finish(world, run, winner, token + 1, b"won") is None
    assert await s.finish(world, run, slow, token, b"later") == Injected(b"won")
    for attempt in (slow, winner, s.call(run, "notify")):
        assert await s.begin(world, run, attempt) == Injected(b"won")
    assert (await s.entry_types(world, run.execution))[1:] == [
        "step.claimed", "step.taken_over", "step.evicted", "step.executed", "step.evicted",
        *["step.injected"] * 4,
    ]  # fmt: skip


NO_HOLDER = steps._Q["finish_step"].replace("holder = ", "holder <> ")
NO_TOKEN = steps._Q["finish_step"].replace("AND token = %(token)s", "")


async def finished_by_a_stranger(db: Database) -> object:
    """What an attempt is told that knows the right token and never held the step."""
    run = await s.opened(db)
    token = await s.permitted(db, run, s.call(run, "notify"))
    return await s.finish(db, run, s.call(run, "notify"), token)


async def finished_with_an_old_token(db: Database) -> object:
    """What an attempt is told that claimed twice and finishes with its first claim."""
    run = await s.opened(db)
    mine = s.call(run, "notify")
    token = await s.permitted(db, run, mine)
    await s.let_lease_run_out(db, mine.key)
    assert await s.permitted(db, run, mine) == token + 1
    return await s.finish(db, run, mine, token)


async def test_finish_matches_holder_and_token(world: Database) -> None:
    assert await finished_by_a_stranger(world) == Evicted()
    assert await finished_with_an_old_token(world) == Evicted()


async def test_without_holder_or_token_a_stale_attempt_would_record(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await s.prepare(db)
    for mutant, story in (
        (NO_HOLDER, finished_by_a_stranger),
        (NO_TOKEN, finished_with_an_old_token),
    ):
        with monkeypatch.context() as patch:
            s.sabotage(patch, steps, finish_step=mutant)
            assert await story(db) is None


async def test_a_late_holder_that_nobody_replaced_records_its_outcome(world: Database) -> None:
    run = await s.opened(world)
    late = s.call(run, "notify")
    token = await s.permitted(world, run, late)
    await s.let_lease_run_out(world, late.key)
    assert await s.finish(world, run, late, token) is None
    assert await s.finish(world, run, late, token) is None
    assert (await s.entry_types(world, run.execution)).count("step.executed") == 1


async def test_what_is_done_is_injected_even_into_a_denied_execution(world: Database) -> None:
    run = await s.opened(world)
    first, second = s.call(run, "notify"), s.call(run, "notify", n=2)
    token = await s.permitted(world, run, first)
    await s.revoke(world, s.OLGA, "operator")
    assert isinstance(await s.begin(world, run, second), ResumeDenied)
    assert await s.finish(world, run, first, token) is None  # it had begun before
    assert await s.begin(world, run, s.call(run, "notify")) == Injected(b"paid")
    assert isinstance(await s.begin(world, run, second), ResumeDenied)
