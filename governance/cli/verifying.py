"""`governance verify`: derive the whole log again; say what holds, and what that does not show."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from governance.cli import exits, output
from governance.cli.connecting import named
from governance.cli.options import DatabaseUrl, Json, one_line
from governance.errors import ConfigurationError, KeyInvalid

if TYPE_CHECKING:
    from governance.evidence.report import Problem, Report
    from governance.signing import Verifier

_LONGEST_NOTE = 256 * 1024


def verify(
    log: Annotated[
        str,
        typer.Option("--log", metavar="NAME", callback=one_line, help="The log's name."),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="A public key, or its file; may be repeated."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="A checkpoint kept outside the database; shows whether the end was cut off.",
        ),
    ] = None,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Verify the log in the database.

    Every entry, link, leaf and checkpoint is derived again from the stored bytes. Nothing is
    trusted but the keys, the name and the checkpoint given here.
    """
    verifiers = read_keys(key or [])
    if not verifiers:
        raise KeyInvalid(
            "There is no key to check signatures with.",
            hint="Give the sealer's public key, or its file, with --key.",
        )
    since = None if checkpoint is None else _read_note(checkpoint)
    report = asyncio.run(_verify(named(database_url), verifiers, log, since))
    if as_json:
        output.as_json(_data(report, since is not None))
    else:
        _print(report, since is not None)
    if not report.ok:
        raise typer.Exit(exits.NEGATIVE)


def read_keys(given: Sequence[str]) -> list[Verifier]:
    """Public keys, each given as its text or as its file.

    Raises:
        KeyInvalid: One is neither.
    """
    from governance.signing import Verifier, load_verifier

    keys: list[Verifier] = []
    for text in given:
        is_key = text.count("+") >= 2 and not Path(text).is_file()
        keys.append(Verifier.parse(text) if is_key else load_verifier(Path(text)))
    return keys


def _read_note(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST_NOTE + 1)
    except OSError as error:
        raise ConfigurationError(
            f"The checkpoint {file} cannot be read: {error.strerror or error}."
        ) from None


async def _verify(url: str, verifiers: Sequence[Verifier], log: str, since: bytes | None) -> Report:
    from governance.db import Database
    from governance.evidence.verify_log import verify_log

    async with Database(url) as database, database.snapshot() as conn:
        return await verify_log(conn, verifiers=verifiers, origin=log, since=since)


def _print(report: Report, had_checkpoint: bool) -> None:
    if report.first_problem is None:
        output.title(f"The log {report.origin} holds.")
    else:
        output.title(f"The log {report.origin} does NOT hold.")
        output.say(f"First difference: {report.first_problem.what}{_place(report.first_problem)}")
    last = report.checkpoint
    output.fields(
        [
            ("Entries", f"{report.entries} in {report.streams} streams"),
            ("Sealed", f"{report.sealed} ({report.unsealed} not yet)"),
            ("Checkpoints", f"{report.checkpoints} good"),
            ("Last", f"size {last.size}, root {last.root.hex()}" if last else "none"),
        ]
    )
    for limit in _limits(report, had_checkpoint):
        output.say(f"Not shown: {limit}")


def _place(problem: Problem) -> str:
    """Where it is, as far as it has a place."""
    known = {
        "entry": problem.entry,
        "stream": problem.stream,
        "seq": problem.seq,
        "leaf": problem.leaf,
        "checkpoint of size": problem.size,
    }
    places = [f"{name} {value}" for name, value in known.items() if value is not None]
    return f" ({', '.join(places)})" if places else ""


def _limits(report: Report, had_checkpoint: bool) -> list[str]:
    """What a good verdict does not establish."""
    if not report.ok:
        return []
    found = ["that what the entries say is true of the world; only that they were not changed."]
    if report.unsealed:
        found.append(f"anything of the last {report.unsealed} entries: no checkpoint covers them.")
    if not had_checkpoint:
        found.append("that the end was not cut off: for that, give --checkpoint.")
    return found


def _data(report: Report, had_checkpoint: bool) -> dict[str, Any]:
    problem, last = report.first_problem, report.checkpoint
    return {
        "ok": report.ok,
        "log": report.origin,
        "entries": report.entries,
        "streams": report.streams,
        "sealed": report.sealed,
        "unsealed": report.unsealed,
        "checkpoints": report.checkpoints,
        "checkpoint": None if last is None else {"size": last.size, "root": last.root},
        "first_problem": None
        if problem is None
        else {
            "step": problem.step,
            "what": problem.what,
            "entry": problem.entry,
            "stream": problem.stream,
            "seq": problem.seq,
            "leaf": problem.leaf,
            "size": problem.size,
        },
        "not_shown": _limits(report, had_checkpoint),
    }
