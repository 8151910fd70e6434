"""A governed activity called from outside its flow: from another workflow, or alone."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from psycopg.sql import SQL
from temporalio.client import ActivityFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from governance.errors import NotGoverned
from tests.temporal.contracts import contract, free
from tests.temporal.flows.pay import PayOnce
from tests.temporal.flows.stray import Stranger
from tests.temporal.playing import Play
from tests.temporal.stage import Stage, failure, result

REFUSED = SQL("""
    SELECT convert_from(p.body, 'UTF8')::json ->> 'workflow_type'
    FROM governance.entry e JOIN governance.payload p ON p.entry = e.id
    WHERE e.type = 'step.refused'""")


async def pay_alone(stage: Stage) -> str:
    """Any client calls the activity as an activity of its own."""
    result: str = await stage.client.execute_activity(
        "pay",
        args=["42"],
        id=f"alone-{uuid.uuid4().hex}",
        task_queue=stage.queue,
        result_type=str,
        start_to_close_timeout=timedelta(seconds=10),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )
    return result


async def test_refused_from_another_workflow_and_on_record(play: Play) -> None:
    async with play(PayOnce, Stranger, contracts=[contract("PayOnce")]) as stage:
        cause = await failure(await stage.start(Stranger.run, "pay", ["42"], actor=None))
        assert isinstance(cause, ActivityError)
        assert isinstance(cause.__cause__, ApplicationError)
        assert (cause.__cause__.type, cause.__cause__.non_retryable) == (NotGoverned.code, True)
        assert "pay is a governed step of PayOnce" in str(cause.__cause__)
        assert stage.ledger.paid == []
        assert await stage.rows(REFUSED) == [("Stranger",)]


async def test_refused_alone_and_on_record(play: Play) -> None:
    async with play(PayOnce, contracts=[contract("PayOnce")]) as stage:
        with pytest.raises(ActivityFailureError) as caught:
            await pay_alone(stage)
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == NotGoverned.code
        assert stage.ledger.paid == []
        assert await stage.rows(REFUSED) == [("",)]


@pytest.mark.parametrize(("elsewhere", "runs"), [("refuse", False), ("pass", True)])
async def test_shared_where_the_contract_says_so(play: Play, elsewhere: str, runs: bool) -> None:
    contracts = [free("PayOnce", "note", elsewhere=elsewhere)]
    async with play(PayOnce, Stranger, contracts=contracts) as stage:
        handle = await stage.start(Stranger.run, "note", ["42"], actor=None)
        if runs:
            await result(handle)
        else:
            assert "note is a governed step" in str((await failure(handle)).__cause__)


async def test_an_activity_that_no_contract_names_passes(play: Play) -> None:
    async with play(PayOnce, Stranger, contracts=[contract("PayOnce")]) as stage:
        await result(await stage.start(Stranger.run, "note", ["42"], actor=None))
