"""The border sees the bytes that were approved, whatever form the arguments have."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from psycopg.sql import SQL
from temporalio.client import HeaderCodecBehavior
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.worker import SharedStateManager

from governance.contracts import StepRule
from governance.rules.step_key import idempotency_key
from tests.temporal.contracts import contract
from tests.temporal.flows.every_form import EveryForm, calls
from tests.temporal.forms import IN_EXECUTOR, PLAIN, Awaited, Encrypting
from tests.temporal.playing import Play
from tests.temporal.stage import OPERATOR, Stage, result

DIGESTS = SQL("""
    SELECT s.key, s.input_digest = a.input_digest, s.binds_digest = a.binds_digest
    FROM governance.step s JOIN governance.approval a ON a.step_key = s.key""")
STEPS = [StepRule(activity=function.__name__, approval="finance") for function in PLAIN]
CONTRACT = contract("EveryForm", steps=STEPS)
CONVERTERS = {"default": DataConverter.default, "pydantic": pydantic_data_converter}


@pytest.fixture(scope="module")
def processes() -> Generator[dict[str, Any]]:
    """Options of a worker whose activities run in other processes."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        shared = SharedStateManager.create_from_multiprocessing(manager)
        yield {"activity_executor": pool, "shared_state_manager": shared}


@pytest.mark.parametrize("codec", [None, Encrypting()], ids=["plain", "encrypted"])
@pytest.mark.parametrize("converter", CONVERTERS)
async def test_awaited(play: Play, converter: str, codec: Encrypting | None) -> None:
    await _check(play, Awaited().all(), {}, converter, codec)


@pytest.mark.parametrize("converter", CONVERTERS)
async def test_in_threads(play: Play, converter: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        worker = {"activity_executor": pool, "max_concurrent_activities": 4}
        await _check(play, IN_EXECUTOR, worker, converter, Encrypting())


@pytest.mark.parametrize("converter", CONVERTERS)
async def test_in_processes(play: Play, processes: dict[str, Any], converter: str) -> None:
    worker = {**processes, "max_concurrent_activities": 2}
    await _check(play, IN_EXECUTOR, worker, converter, None)


async def test_with_encoded_headers(play: Play) -> None:
    """Headers pass the codec too; they are not taken for the input."""
    options = {"header_codec_behavior": HeaderCodecBehavior.CODEC}
    await _check(play, Awaited().all(), {}, "default", Encrypting(), **options)


async def _check(
    play: Play,
    activities: list[Any],
    worker: dict[str, Any],
    converter: str,
    codec: Encrypting | None,
    **options: Any,
) -> None:
    data_converter = dataclasses.replace(CONVERTERS[converter], payload_codec=codec)
    options |= {"data_converter": data_converter, "worker": worker, "activities": activities}
    async with play(EveryForm, contracts=[CONTRACT], **options) as stage:
        handle = await stage.start(EveryForm.run, converter == "pydantic")
        count = len(calls(converter == "pydantic"))
        await stage.approve(count)
        results = await result(handle)
        assert len(results) == count
        found = await stage.rows(DIGESTS)
        assert len(found) == count
        assert all(same for _, *both in found for same in both)
        await _steps_know_themselves(stage, results)


async def _steps_know_themselves(stage: Stage, results: dict[str, str]) -> None:
    """No activity was handed another step's key."""
    told = [results["its own step"].split(), results["its own step again"].split()]
    keys = {idempotency_key(key) for key, *_ in await stage.rows(DIGESTS)}
    assert [one[0] for one in told] == ["a", "b"]
    assert told[0][1] != told[1][1]
    assert {one[1] for one in told} <= keys
    assert {tuple(one[2:]) for one in told} == {("1", OPERATOR)}
