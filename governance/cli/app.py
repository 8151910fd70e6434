"""All commands, put together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from governance import __version__
from governance.cli import approvals, contracts, deciding, freezing, history, keys, roles
from governance.cli.doctor import doctor
from governance.cli.migrating import migrate
from governance.cli.sealing import seal
from governance.cli.verifying import verify

app = typer.Typer(
    name="governance",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 negative verdict, 2 bad input, configuration or server.",
)
approvals.app.command("approve")(deciding.approve)
approvals.app.command("reject")(deciding.reject)
approvals.app.command("withdraw")(deciding.withdraw)
approvals.app.command("revoke")(deciding.revoke)
approvals.app.command(
    "deny", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)(deciding.deny)
app.add_typer(approvals.app, name="approvals")
app.add_typer(roles.app, name="roles")
app.add_typer(contracts.app, name="contracts")
app.add_typer(keys.app, name="keys")
app.command("freeze")(freezing.freeze)
app.command("unfreeze")(freezing.unfreeze)
app.command("frozen")(freezing.frozen)
app.command("migrate")(migrate)
app.command("doctor")(doctor)
app.command("seal")(seal)
app.command("verify")(verify)
app.command("timeline")(history.timeline)
app.command("turns")(history.turns)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"temporal-governance {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Governed approvals: who waits for whom, who decided, and the proof of it."""


def command() -> Any:
    """The whole command line, ready to be run."""
    return typer.main.get_command(app)
