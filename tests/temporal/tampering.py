"""Interceptors that get between the plugin and the server, as a worker's owner could."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.converter import PayloadConverter
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

Change = Callable[[StartActivityInput], StartActivityInput]


class Tampering(Interceptor):
    """Changes what the plugin has let through; placed on the server's side of it."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return type("TamperingInbound", (_Inbound,), {"change": staticmethod(self._change)})


class _Inbound(WorkflowInboundInterceptor):
    change: Change

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self.change))


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, change: Change) -> None:
        super().__init__(next)
        self._change = change

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        if not input.activity.startswith("pay"):
            return super().start_activity(input)
        return super().start_activity(self._change(input))


def other_arguments(input: StartActivityInput) -> StartActivityInput:
    """Another amount than the approved one."""
    return dataclasses.replace(input, args=["1000000"])


def without_headers(input: StartActivityInput) -> StartActivityInput:
    """As a worker without the plugin calls it."""
    return dataclasses.replace(input, headers={})


def with_header(name: str, text: str) -> Change:
    """A header of the plugin's, made up."""

    def change(input: StartActivityInput) -> StartActivityInput:
        [payload] = PayloadConverter.default.to_payloads([text])
        return dataclasses.replace(input, headers={**input.headers, name: payload})

    return change
