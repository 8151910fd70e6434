"""A governed client and worker on the session's servers, with a database of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from governance.contracts import FlowContract
from tests.temporal.contracts import contract
from tests.temporal.playing import Play, Scene, playing, staged
from tests.temporal.stage import Stage


@pytest.fixture
def scene(dsn: str, temporal_address: str) -> Scene:
    """A governed client with its contracts in force and no worker yet."""
    return partial(staged, dsn=dsn, address=temporal_address)


@pytest.fixture
def play(scene: Scene) -> Play:
    """A governed client and its worker; each workflow is under the usual contract or a given."""

    def made(
        *flows: Any, contracts: Sequence[FlowContract] | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Stage]:
        if contracts is None:
            contracts = [contract(str(flow.__name__)) for flow in flows]
        return playing(scene, *flows, contracts=contracts, **options)

    return made
