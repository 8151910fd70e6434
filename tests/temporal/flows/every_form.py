"""Calls with arguments of every form, all at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tests.temporal.forms import Model, Money, MoneyWithNote

CALLS: dict[str, tuple[str, list[Any]]] = {
    "dict for a dataclass": ("take_money", [{"amount": 1}]),
    "other order of keys": ("take_money", [{"currency": "USD", "amount": 2}]),
    "dataclass": ("take_money", [Money(3)]),
    "subclass": ("take_money", [MoneyWithNote(4)]),
    "list for a set": ("take_set", [["b", "a", "c"]]),
    "int for a float": ("take_float", [5]),
    "tuple": ("take_tuple", [(1, 2)]),
    "none": ("take_optional", [None]),
    "optional": ("take_optional", ["x"]),
    "bytes": ("take_bytes", [b"\x00\xff"]),
    "no argument": ("take_nothing", []),
    "many arguments": ("take_many", [1, Money(6), "three"]),
    "unicode": ("take_optional", ["é\u2028😀"]),
    "its own step": ("take_key", ["a"]),
    "its own step again": ("take_key", ["b"]),
}
MODELS: dict[str, tuple[str, list[Any]]] = {
    "dict for a model": ("take_model", [{"amount": 3}]),
    "offset for Z": ("take_model", [{"amount": 1.5, "when": "2026-01-01T00:00:00+00:00"}]),
    "model": ("take_model", [Model(amount=1)]),
    "model with a date": ("take_model", [Model(amount=1, when=datetime(2026, 1, 1, tzinfo=UTC))]),
}
"""What the default converter cannot carry both ways."""


def calls(models: bool) -> dict[str, tuple[str, list[Any]]]:
    """All calls that a converter can encode."""
    return CALLS | MODELS if models else CALLS


@workflow.defn
class EveryForm:
    """Makes all calls and gives back, as text, what came."""

    @workflow.run
    async def run(self, models: bool) -> dict[str, str]:
        made = calls(models)
        results = await asyncio.gather(
            *(
                workflow.execute_activity(
                    name, args=args, start_to_close_timeout=timedelta(seconds=20)
                )
                for name, args in made.values()
            )
        )
        return {name: str(result) for name, result in zip(made, results, strict=True)}
