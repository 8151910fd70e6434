"""The declaration of a governed flow: who may resume it, which steps wait for whom.

Every class here is frozen and refuses what it does not know. `docs/reference/contract.md` describes
each field with an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import MinLen
from pydantic import AfterValidator, Field

from governance import canonical
from governance.contracts import checks, form
from governance.contracts.base import ContractModel
from governance.contracts.fields import (
    ArgumentPointer,
    BindingPointer,
    Duration,
    Label,
    Lease,
    Line,
    Listed,
    Name,
    Number,
    People,
    Prose,
    Scalar,
    Series,
    Switch,
    labelled,
)
from governance.contracts.problems import Problem

MAX_BYTES = 256 * 1024
"""Largest contract, as a file and in canonical form."""

StepKind = Literal["effect", "template", "model"]
CallKind = Literal["activity", "child_workflow", "nexus"]
Duty = Literal["actor"]


class Condition(ContractModel):
    """A test of one place in a call's arguments; every operator given must hold."""

    table: ClassVar[str] = "when"

    path: ArgumentPointer
    eq: Scalar | None = None
    in_: Listed[Scalar] | None = Field(default=None, validation_alias="in")
    lt: Number | None = None
    gte: Number | None = None
    exists: Switch | None = None
    currency: Name | None = None
    currency_path: ArgumentPointer | None = None

    def problems(self) -> tuple[Problem, ...]:
        """Return what does not fit together."""
        return tuple(checks.condition(self))


class Shown(ContractModel):
    """A place in the arguments that approvers see, and that is readable in the database."""

    table: ClassVar[str] = "show"

    label: Line
    path: ArgumentPointer


class Link(ContractModel):
    """An address that approvers can open."""

    table: ClassVar[str] = "links"

    label: Line
    url: Line


class ApprovalRule(ContractModel):
    """Who may decide, within which time, and what they are shown."""

    table: ClassVar[str] = "approvals"

    roles: Annotated[Listed[Name], MinLen(1)]
    needed: People = 1
    duties: Listed[Duty] = ("actor",)
    approver_recheck: Switch = False
    decide_by: Duration | None = None
    execute_by: Duration | None = None
    title: Line | None = None
    show: Annotated[Listed[Shown], labelled("path")] = ()
    links: Annotated[Listed[Link], labelled("url")] = ()
    instructions: Prose | None = None

    def problems(self) -> tuple[Problem, ...]:
        """Return what does not fit together."""
        return tuple(checks.approval(self))


class StepRule(ContractModel):
    """Which calls are a governed step, and what holds for them."""

    table: ClassVar[str] = "steps"

    activity: Name
    name: Name = Field(default_factory=lambda given: _own_name(given))
    calls: CallKind = "activity"
    when: Listed[Condition] = ()
    kind: StepKind = "effect"
    approval: Label | None = None
    binds: Listed[BindingPointer] = ()
    on_reject: Literal["fail"] = "fail"
    lease: Lease = timedelta(seconds=60)

    def problems(self) -> tuple[Problem, ...]:
        """Return what does not fit together."""
        return tuple(checks.step(self))


class FlowContract(ContractModel):
    """The declaration of a flow: a workflow type and what governs it.

    Two contracts with the same fields have the same digest, however they were written.
    """

    flow: Name
    version: Line | None = None
    resume: Listed[Name] = ()
    approvals: Annotated[Mapping[Label, ApprovalRule], AfterValidator(MappingProxyType)] = Field(
        default_factory=lambda: MappingProxyType({}), max_length=100
    )
    steps: Annotated[Series[StepRule], MinLen(1)]
    unmatched: Literal["pass", "deny"] = "pass"
    elsewhere: Literal["refuse", "pass"] = "refuse"
    on_denied: Literal["fail"] = "fail"

    def problems(self) -> tuple[Problem, ...]:
        """Return what does not fit together."""
        return tuple(checks.contract(self, MAX_BYTES))

    def canonical(self) -> bytes:
        """Return the canonical form, the bytes that `parse_canonical` reads."""
        return form.write(self)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical form, 32 bytes."""
        return canonical.sha256(self.canonical())

    def __eq__(self, other: object) -> bool:
        """Compare by digest: field by field True would equal the decimal 1."""
        return isinstance(other, FlowContract) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash by digest: equal contracts have equal digests."""
        return hash(self.digest)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: nothing in a contract changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the canonical form: a read-only table cannot be pickled."""
        from governance.contracts.loading import parse_canonical

        return parse_canonical, (self.canonical(),)


def _own_name(given: dict[str, Any]) -> str:
    # Without an activity the contract is refused anyway.
    return str(given.get("activity", ""))
