"""A workflow module that imports the product at its top, without passing it through the sandbox."""

from __future__ import annotations

from temporalio import workflow

import governance.errors
from temporal_integration import GovernancePlugin, GovernedStep, acting_as, governed_step
from tests.temporal.flows.pay import pay

NAMES = [
    f"{one.__module__}.{one.__qualname__}"
    for one in (
        GovernancePlugin,
        GovernedStep,
        acting_as,
        governed_step,
        governance.errors.ResumeDenied,
    )
]


@workflow.defn
class PayAndName:
    """One payment."""

    @workflow.run
    async def run(self, what: str) -> list[str]:
        return [await pay(what), *NAMES]
