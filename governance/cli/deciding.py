"""`governance approvals approve|reject|withdraw|revoke`: look, ask, decide, say what came of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from governance.cli import exits, output
from governance.cli.connecting import ask
from governance.cli.identity import decider, person, submitted_by
from governance.cli.options import DatabaseUrl, Json, Person, Realm, Reason
from governance.cli.text import visible
from governance.errors import ConfigurationError, DigestMismatch, ReasonRequired

if TYPE_CHECKING:
    from governance.approvals import Approval
    from governance.client import GovernanceClient
    from governance.eligibility import Eligibility
    from governance.rules.decision import Accepted

_Look = Callable[["GovernanceClient"], Awaitable[tuple["Approval", "Eligibility"]]]
_DIGEST = re.compile(r"[0-9a-f]{12,64}")

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, or at least 8 digits.")]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="HEX",
        help="Decide only if the input digest is, or begins with, this (12 digits or more).",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask; required where nobody can be asked.")
]


def approve(
    approval: Id,
    reason: Reason = None,
    digest: Digest = None,
    yes: Yes = False,
    claimed: Person = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Approve, and the step runs once.

    If nobody else has to approve and its actor may still go on by then.
    """
    found = _seen(database_url, realm, approval, claimed, yes, digest, "Approve")
    who, why = decider(claimed), reason or ""

    async def work(client: GovernanceClient) -> Accepted:
        return await client.approve(found.id, who, why, digest=found.input_digest)

    accepted = ask(database_url, realm, work)
    _told(database_url, realm, found, claimed, "Approved", as_json)
    if accepted.missing and not as_json:
        from governance.rules.quorum import what_is_missing

        missing = what_is_missing(accepted.missing, accepted.needed, found.roles)
        output.say(f"Still needed: {missing}.")


def reject(
    approval: Id,
    reason: Reason = None,
    digest: Digest = None,
    yes: Yes = False,
    claimed: Person = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Reject, with a reason: the step does not run."""
    if not (reason or "").strip() and (yes or not sys.stdin.isatty()):
        raise ReasonRequired("A rejection needs a reason.", hint="Say why with --reason.")
    found = _seen(database_url, realm, approval, claimed, yes, digest, "Reject")
    who, why = decider(claimed), reason or str(typer.prompt("Why?", err=True))

    async def work(client: GovernanceClient) -> None:
        await client.reject(found.id, who, why, digest=found.input_digest)

    ask(database_url, realm, work)
    _told(database_url, realm, found, claimed, "Rejected", as_json)


def withdraw(
    approval: Id,
    reason: Reason = None,
    claimed: Person = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Take a request back, as who asked."""
    who, why = decider(claimed), reason or ""

    async def work(client: GovernanceClient) -> Approval:
        found = await client.show_approval(await client.find_approval(approval))
        await client.withdraw(found.id, who, why)
        return found

    _told(database_url, realm, ask(database_url, realm, work), claimed, "Withdrawn", as_json)


def revoke(
    approval: Id,
    reason: Reason = None,
    claimed: Person = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
    realm: Realm = "default",
) -> None:
    """Take an approval back, with a reason, before its step begins."""
    if not (reason or "").strip() and not sys.stdin.isatty():
        raise ReasonRequired("A revocation needs a reason.", hint="Say why with --reason.")
    who, why = decider(claimed), reason or str(typer.prompt("Why?", err=True))

    async def work(client: GovernanceClient) -> Approval:
        found = await client.show_approval(await client.find_approval(approval))
        await client.revoke(found.id, who, why)
        return found

    _told(database_url, realm, ask(database_url, realm, work), claimed, "Revoked", as_json)


def deny() -> None:
    """Say which word is meant: people reject, the system denies."""
    raise ConfigurationError("There is no command deny.", hint="Did you mean reject?")


def look(approval: str, who: str) -> _Look:
    """What finds an approval and whether `who` could decide it."""

    async def work(client: GovernanceClient) -> tuple[Approval, Eligibility]:
        found = await client.find_approval(approval)
        return await client.show_approval(found), await client.eligibility(found, who)

    return work


def _seen(
    database_url: str | None,
    realm: str,
    approval: str,
    claimed: str | None,
    yes: bool,
    digest: str | None,
    verb: str,
) -> Approval:
    """The approval, after its digest was compared and the person at the terminal agreed.

    Raises:
        DigestMismatch: It is about another input.
        ConfigurationError: Nobody can be asked and --yes is not given.
        typer.Exit: The person said no.
    """
    from governance.cli import card

    if not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "There is no terminal to ask on, and nothing was decided.",
            hint="Give --yes; with --digest only what was seen is decided.",
        )
    found, reader = ask(database_url, realm, look(approval, person(claimed)))
    _compare(found, digest)
    if yes:
        return found
    output.title(found.title, aside=True)
    output.fields(card.as_fields(found, reader), aside=True)
    if not typer.confirm(f'{verb} "{visible(found.title)}"?', err=True):
        output.note("Nothing was decided.")
        raise typer.Exit(exits.NEGATIVE)
    return found


def _compare(found: Approval, digest: str | None) -> None:
    if digest is None:
        return
    digits = digest.strip().lower()
    if not _DIGEST.fullmatch(digits):
        raise ConfigurationError(
            f"{digest[:80]!r} is not an input digest.",
            hint="Give its 64 hexadecimal digits, or at least the first 12.",
        )
    if not found.input_digest.hex().startswith(digits):
        raise DigestMismatch(
            f"The input of approval {found.id.hex} is not the one you saw: its digest is "
            f"{found.input_digest.hex()}. Nothing was decided.",
            hint="Look at it again: `governance approvals show`.",
        )


def _told(
    database_url: str | None,
    realm: str,
    found: Approval,
    claimed: str | None,
    done: str,
    as_json: bool,
) -> None:
    """Print what came of it."""
    who = person(claimed)
    if not as_json:
        output.say(f"{done}: {found.title}")
        output.say(f"On record: {who}, through the command line ({submitted_by()}).")
        return
    from governance.cli import card

    after, reader = ask(database_url, realm, look(found.id.hex, who))
    output.as_json(card.as_data(after, reader))
