"""Contracts from TOML files and from their canonical form."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from governance.contracts import form
from governance.contracts.models import MAX_BYTES, FlowContract
from governance.errors import ContractInvalid


def load_toml(path: str | Path) -> FlowContract:
    """Read a contract from a TOML file.

    Raises:
        ContractInvalid: The file cannot be read, is too large, or is not a contract.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ContractInvalid(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContractInvalid(f"{path}: not UTF-8 text, at byte {error.start}") from None
    return from_toml(text, str(path))


def from_toml(text: str, source: str = "contract") -> FlowContract:
    """Read a contract from TOML text.

    Args:
        text: TOML 1.0.
        source: What error messages call the text.

    Raises:
        ContractInvalid: Too large, not TOML, or not a contract.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ContractInvalid(f"{source}: more than {MAX_BYTES} bytes")
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ContractInvalid(f"{source}: not TOML: {error}") from None
    return _build(data, source)


def parse_canonical(data: bytes) -> FlowContract:
    """Read the canonical form of a contract, from the database or from a history.

    Raises:
        ContractInvalid: The bytes are not the canonical form of a contract.
    """
    source = "canonical contract"
    try:
        fields = form.read(data, MAX_BYTES)
    except ValueError as error:
        raise ContractInvalid(f"{source}: {error}") from None
    contract = _build(fields, source)
    if contract.canonical() != data:
        raise ContractInvalid(f"{source}: it leaves out a field or writes one in another way")
    return contract


def _build(data: Mapping[str, Any], source: str) -> FlowContract:
    return FlowContract.model_validate(dict(data), context={"source": source})
