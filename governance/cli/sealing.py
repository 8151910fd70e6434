"""`governance seal`: give entries their place in the tree and sign what it has become."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from governance.cli import exits, output
from governance.cli.connecting import named
from governance.cli.options import DatabaseUrl, Json
from governance.errors import ConfigurationError

if TYPE_CHECKING:
    from governance.chain.sealer import Sealed, Sealer


Follow = Annotated[bool, typer.Option("--follow", help="Go on sealing what comes, until stopped.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoints",
        envvar="GOVERNANCE_CHECKPOINTS",
        metavar="DIR",
        help="The folder outside the database that keeps the signed checkpoints.",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="The signing key; else GOVERNANCE_SIGNING_KEY_FILE or GOVERNANCE_SIGNING_KEY.",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", metavar="KEY", help="A public key, or its file, used before."),
]
NewFolder = Annotated[
    bool,
    typer.Option(
        "--new-folder",
        help="Accept that the folder is empty although the database has checkpoints.",
    ),
]
Interval = Annotated[
    float, typer.Option("--interval", min=0.01, max=3600, help="Seconds between two looks.")
]


def seal(
    follow: Follow = False,
    checkpoints: Folder = None,
    key: Key = None,
    trust: Trust = None,
    new_folder: NewFolder = False,
    interval: Interval = 1.0,
    as_json: Json = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Seal and sign what is not sealed yet.

    One sealer a log, and the only process that has the key.
    """
    from governance.chain.sealer import Sealer
    from governance.chain.sinks import FileSink
    from governance.cli.verifying import read_keys
    from governance.signing import load_signer

    url = named(database_url)
    if checkpoints is None:
        raise ConfigurationError(
            "There is no place for the checkpoints.",
            hint="Give --checkpoints or set GOVERNANCE_CHECKPOINTS to a folder outside the "
            "database's reach.",
        )
    sealer = Sealer(
        url,
        load_signer(file=key),
        [FileSink(checkpoints)],
        trusted=read_keys(trust or []),
        new_sinks=new_folder,
    )
    work = _follow(sealer, interval, as_json) if follow else _all(sealer, as_json)
    if asyncio.run(work):
        raise typer.Exit(exits.INTERRUPTED)


async def _all(sealer: Sealer, as_json: bool) -> bool:
    """Seal until nothing is left."""
    entries, size = 0, None
    async with sealer:
        more = True
        while more:
            sealed = await sealer.seal_once()
            entries, more = entries + sealed.entries, sealed.more
            size = sealed.checkpoint.size if sealed.checkpoint else size
    if as_json:
        output.as_json({"entries": entries, "checkpoint": size})
    elif entries or size is not None:
        output.say(_sentence(entries, size))
    else:
        output.say("Nothing to seal.")
    return False


async def _follow(sealer: Sealer, interval: float, as_json: bool) -> bool:
    """Seal until SIGTERM or Ctrl-C, after the round at hand; true for Ctrl-C."""
    stop, interrupted = asyncio.Event(), asyncio.Event()

    def interrupt() -> None:
        interrupted.set()
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    _show_warnings()

    async def told(sealed: Sealed) -> None:
        size = sealed.checkpoint.size if sealed.checkpoint else None
        if as_json:
            output.as_json({"entries": sealed.entries, "checkpoint": size}, lines=True)
        else:
            output.say(_sentence(sealed.entries, size))
        sys.stdout.flush()

    async with sealer:
        await sealer.follow(interval, stop, told=told)
    return interrupted.is_set()


def _sentence(entries: int, size: int | None) -> str:
    signed = "" if size is None else f"; signed a checkpoint of size {size}"
    return f"Sealed {entries} {'entry' if entries == 1 else 'entries'}{signed}."


def _show_warnings() -> None:
    """What interrupts a sealer that goes on is worth a line."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("governance: %(message)s"))
    logging.getLogger("governance").addHandler(handler)
