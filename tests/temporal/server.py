"""Requests to the Temporal server that its Python client has no method for."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle


def run_id_of(handle: WorkflowHandle[Any, Any]) -> str:
    """The run that the handle names, else the one that was started with it."""
    return handle.run_id or handle.result_run_id or ""


def reset_request(
    handle: WorkflowHandle[Any, Any],
    event: int,
    exclude: Collection[ResetReapplyExcludeType.ValueType] = (),
) -> ResetWorkflowExecutionRequest:
    """A reset of the handle's run."""
    return ResetWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run_id_of(handle)),
        reason="test",
        workflow_task_finish_event_id=event,
        request_id=uuid.uuid4().hex,
        reset_reapply_exclude_types=list(exclude),
    )
