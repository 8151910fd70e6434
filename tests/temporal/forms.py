"""Arguments of every form that converters treat in their own way, and activities that take them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BaseModel
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from temporal_integration import governed_step


@dataclass
class Money:
    amount: int
    currency: str = "EUR"


@dataclass
class MoneyWithNote(Money):
    note: str = "n"


class Model(BaseModel):
    amount: float
    when: datetime | None = None


def take_money(value: Money) -> Money:
    return value


def take_set(value: set[str]) -> list[str]:
    return sorted(value)


def take_float(value: float) -> float:
    return value


def take_tuple(value: tuple[int, int]) -> tuple[int, int]:
    return value


def take_optional(value: str | None) -> None:
    return None


def take_bytes(value: bytes) -> bytes:
    return value


def take_model(value: Model) -> Model:
    return value


def take_nothing() -> str:
    return "nothing"


def take_many(one: int, two: Money, three: str = "three") -> str:
    return f"{one} {two.amount} {three}"


def take_key(value: str) -> str:
    """What the activity knows of its step."""
    step = governed_step()
    return f"{value} {step.idempotency_key} {step.token} {step.actor}"


PLAIN: list[Callable[..., Any]] = [
    take_money,
    take_set,
    take_float,
    take_tuple,
    take_optional,
    take_bytes,
    take_model,
    take_nothing,
    take_many,
    take_key,
]


IN_EXECUTOR = [activity.defn(function) for function in PLAIN]
"""The activities as plain functions, for threads and processes."""


class Awaited:
    """The same activities as coroutines."""

    @activity.defn
    async def take_money(self, value: Money) -> Money:
        return take_money(value)

    @activity.defn
    async def take_set(self, value: set[str]) -> list[str]:
        return take_set(value)

    @activity.defn
    async def take_float(self, value: float) -> float:
        return take_float(value)

    @activity.defn
    async def take_tuple(self, value: tuple[int, int]) -> tuple[int, int]:
        return take_tuple(value)

    @activity.defn
    async def take_optional(self, value: str | None) -> None:
        return take_optional(value)

    @activity.defn
    async def take_bytes(self, value: bytes) -> bytes:
        return take_bytes(value)

    @activity.defn
    async def take_model(self, value: Model) -> Model:
        return take_model(value)

    @activity.defn
    async def take_nothing(self) -> str:
        return take_nothing()

    @activity.defn
    async def take_many(self, one: int, two: Money, three: str = "three") -> str:
        return take_many(one, two, three)

    @activity.defn
    async def take_key(self, value: str) -> str:
        return take_key(value)

    def all(self) -> list[Any]:
        """What to register."""
        return [getattr(self, function.__name__) for function in PLAIN]


class Encrypting(PayloadCodec):
    """Encrypts with a random nonce: the same payload never has the same bytes."""

    def __init__(self) -> None:
        self._cipher = AESGCM(bytes(32))

    async def encode(self, payloads: Any) -> list[Payload]:
        return [self._encrypt(one) for one in payloads]

    async def decode(self, payloads: Any) -> list[Payload]:
        return [self._decrypt(one) for one in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        nonce = os.urandom(12)
        data = nonce + self._cipher.encrypt(nonce, payload.SerializeToString(), None)
        return Payload(metadata={"encoding": b"binary/encrypted"}, data=data)

    def _decrypt(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != b"binary/encrypted":
            return payload
        plain = self._cipher.decrypt(payload.data[:12], payload.data[12:], None)
        return Payload.FromString(plain)
