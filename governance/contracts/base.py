"""What every model of a contract shares: frozen, strict, and one error for all that is wrong."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler

from governance.contracts.form import key_of
from governance.contracts.problems import Problem, read_errors, refusal, several

_inside: ContextVar[bool] = ContextVar("governance_contract_inside", default=False)
_keys: dict[str, list[str]] = {}


class ContractModel(BaseModel):
    """A part of a contract.

    Building one raises ContractInvalid, never pydantic's own error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    table: ClassVar[str] = ""
    """The key of a contract file that holds tables of this kind; empty for the file itself."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Note the keys of this kind of table, for the message about an unknown one."""
        super().__pydantic_init_subclass__(**kwargs)
        _keys[cls.table] = cls.known_keys()

    @classmethod
    def known_keys(cls) -> list[str]:
        """Return the keys that a table of this kind may have."""
        return [key_of(name, field) for name, field in cls.model_fields.items()]

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with fields that are each right on their own."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_error(
        cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        outermost = not _inside.get()
        try:
            with _nested():
                model = handler(data)
                problems = model.problems()
        except ValidationError as error:
            if not outermost:
                raise
            keys = {**_keys, "": cls.known_keys()}
            problems = read_errors(error.errors(include_url=False), keys)
        else:
            if not problems:
                return model
            if not outermost:
                raise several(problems)
        source = (info.context or {}).get("source", cls.__name__)
        raise refusal(source, problems)


@contextmanager
def _nested() -> Generator[None, None, None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
