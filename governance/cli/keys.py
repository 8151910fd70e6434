"""`governance keys`: the key that signs checkpoints, and its public half."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from governance.cli import output
from governance.cli.options import Json, one_line

app = typer.Typer(no_args_is_help=True, help="Keys that sign checkpoints.")

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@app.callback()
def keys() -> None:
    """Keys that sign checkpoints."""


@app.command("new")
def new(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", callback=one_line, help="The name of the log it will sign."),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for the two files.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Make a signing key: NAME.key for the sealer alone, NAME.pub for everybody.

    The folder is made if it is missing, files are never replaced. In file names, what is not a
    letter, digit, dot, dash or underscore becomes an underscore.
    """
    from governance.signing import new_key

    plain = _NOT_PLAIN.sub("_", name).strip(".") or "log"
    private, public = out / f"{plain}.key", out / f"{plain}.pub"
    _make(out)
    verifier = new_key(name, private, public)
    if as_json:
        output.as_json(
            {
                "name": name,
                "private_file": str(private),
                "public_file": str(public),
                "public_key": verifier.text,
            }
        )
        return
    output.say(f"Signing key: {private} (keep it where only the sealer can read it)")
    output.say(f"Public key:  {public}")
    output.say(verifier.text)


def _make(folder: Path) -> None:
    """Make the folder, for its owner alone, unless it is there."""
    from governance.errors import KeyInvalid

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise KeyInvalid(
            f"The folder {folder} cannot be made: {error.strerror or error}."
        ) from None
