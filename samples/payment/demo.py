"""The story in three acts, on a real Postgres and a real Temporal. `make demo` runs it.

Exits 0 only if everything it tells was observed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
import uuid
from typing import Any

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from governance.chain.sealer import Sealer
from governance.chain.sinks import FileSink
from governance.cli.sentences import sentence
from governance.decisions import Decider
from governance.errors import DecisionRefused, GovernanceError
from governance.evidence.verify_log import verify_log
from governance.signing import Ed25519Signer
from samples.payment.stage import (
    ADMINS,
    APPROVER,
    OPERATOR,
    OUTSIDER,
    NotObserved,
    Stage,
    stage,
)

STARTED = time.monotonic()


def say(text: str = "") -> None:
    """One line, at once."""
    print(text, flush=True)


def progress(text: str) -> None:
    """What goes on in the background."""
    say(f"  {time.monotonic() - STARTED:5.1f} s  {text}")


def observe(what: str, holds: bool) -> None:
    """Print what was observed.

    Raises:
        NotObserved: It was not.
    """
    if not holds:
        raise NotObserved(what)
    say(f"  ✓ {what}")


async def refused(play: Stage, approval: uuid.UUID, person: str) -> str:
    """Try to approve as this person; return the code of the refusal."""
    try:
        await play.governance.approve(approval, Decider(person, "demo"))
    except DecisionRefused as refusal:
        say(f"    {person}: {refusal.message}")
        return refusal.code
    return "none"


async def act_one(play: Stage) -> str:
    """A payment waits, the wrong people are refused, the right one approves."""
    say("\nAct 1: a payment waits for somebody who may approve it")
    payment = await play.start_payment("4200.00", "I-1001")
    say(f"  {OPERATOR} (operator, finance-approver) starts {payment.id}")
    approval = await play.waiting_approval(payment.id)
    card = await play.governance.show_approval(approval)
    observe(f'it waits: "{card.title}", asked for {card.requested_by}', not play.bank.lines())
    code = await refused(play, approval, OPERATOR)
    observe(f"{OPERATOR}, for whom it runs, is refused: {code}", code == "actor_must_not_decide")
    code = await refused(play, approval, OUTSIDER)
    observe(f"{OUTSIDER}, without the role, is refused: {code}", code == "barrier_not_met")
    await play.governance.approve(approval, Decider(APPROVER, "demo"), reason="matches the invoice")
    reference = await asyncio.wait_for(payment.result(), 30)
    lines = play.bank.lines()
    once = len(lines) == 1 and lines[0]["as"] == OPERATOR
    observe(f"{APPROVER} approves; paid once, as {OPERATOR}, reference {reference}", once)
    await play.until_entry(payment.id, "flow.completed")
    return payment.id


async def act_two(play: Stage, workflow_id: str) -> None:
    """A reset to before the payment changes nothing outside."""
    say("\nAct 2: the workflow is reset to before the payment")
    paid = play.bank.lines()
    again = await play.reset(workflow_id)
    reference = await asyncio.wait_for(again.result(), 30)
    observe(f"it ran again to the same reference, {reference}", reference == paid[0]["reference"])
    observe("nothing was paid again", play.bank.lines() == paid)
    types = [e["type"] for e in await play.entries(workflow_id)]
    observe("nobody was asked again", types.count("approval.requested") == 1)
    observe("the recorded results were injected", types.count("step.injected") == 2)
    await play.until_entry(workflow_id, "flow.completed", 2)


async def act_three(play: Stage) -> str:
    """The operator loses the role while the payment waits."""
    say("\nAct 3: the operator's role is revoked while a payment waits")
    payment = await play.start_payment("990.00", "I-1002")
    approval = await play.waiting_approval(payment.id)
    say(f"  {payment.id} waits; {ADMINS[0]} revokes {OPERATOR}'s role operator")
    await play.governance.revoke_role(OPERATOR, "operator", ADMINS[0], "left the team")
    await play.governance.approve(approval, Decider(APPROVER, "demo"), reason="matches")
    say(f"  {APPROVER} approves all the same")
    cause: BaseException | None = None
    try:
        await asyncio.wait_for(payment.result(), 30)
    except WorkflowFailureError as error:
        cause = error.cause
    code = cause.type if isinstance(cause, ApplicationError) else "none"
    observe(f"the workflow ends failed: {code}", code == "resume_denied")
    types = [e["type"] for e in await play.entries(payment.id)]
    observe("no step ran", len(play.bank.lines()) == 1 and "step.claimed" not in types)
    observe("flow.failed is on the chain", types[-1] == "flow.failed")
    [execution] = await play.governance.executions(payment.id)
    turns = await play.governance.turns(execution["id"])
    told = [turn for turn in turns if turn.recipient == OPERATOR]
    observe(f'a turn tells {OPERATOR}: "{told[0].body[:60]}…"' if told else "a turn", bool(told))
    return payment.id


async def seal_and_verify(play: Stage) -> None:
    """Seal the chain with a fresh key and verify it with the public half alone."""
    say("\nThe chain is sealed and verified")
    async with play.governance.database.reading() as conn:
        row = await (await conn.execute("SELECT origin FROM governance.log")).fetchone()
    origin = row[0] if row else ""
    signer = Ed25519Signer.generate(origin)
    sink = FileSink(play.folder / "checkpoints")
    async with Sealer(play.database_url, signer, [sink]) as sealer:
        while (await sealer.seal_once()).more:
            pass
    async with play.governance.database.snapshot() as conn:
        report = await verify_log(
            conn, verifiers=[signer.verifier], origin=origin, since=await sink.latest()
        )
    problem = f": {report.first_problem.what}" if report.first_problem else ""
    observe(
        f"{report.sealed} entries in {report.streams} streams, sealed by one checkpoint of "
        f"log {origin}, signature and every link verified{problem}",
        report.ok and report.unsealed == 0,
    )


async def show_timeline(play: Stage, workflow_id: str) -> None:
    """Who, what, when, which entry."""
    say(f"\nTimeline of {workflow_id}")
    say("  when      entry  leaf      what")
    for entry in await play.entries(workflow_id):
        payload: dict[str, Any] = json.loads(bytes(entry["payload"]))
        when = entry["at"].astimezone().strftime("%H:%M:%S")
        leaf = bytes(entry["leaf"]).hex()[:8]
        say(f"  {when}  {entry['seq']:5}  {leaf}  {sentence(entry['type'], payload)}")


async def play_all() -> None:
    """All acts, then the evidence."""
    say("Setting the stage")
    async with stage(progress) as play:
        first = await act_one(play)
        await act_two(play, first)
        second = await act_three(play)
        await seal_and_verify(play)
        await show_timeline(play, first)
        await show_timeline(play, second)
    say("\nLook further, with your own servers (GOVERNANCE_DATABASE_URL, TEMPORAL_ADDRESS):")
    for command, what in (
        ("governance approvals list", "what waits, and for whom"),
        ("governance timeline WORKFLOW_ID", "everything on record of one workflow"),
        ("governance roles list", "who holds which role, by whose grant"),
        ("governance seal --follow", "seal as you go, with a key workers never see"),
        ("governance verify --key KEY --log NAME", "check the whole log"),
    ):
        say(f"  {command:40} {what}")
    say(f"\nAll of it was observed, in {time.monotonic() - STARTED:.0f} s. Servers are stopped.")


def main() -> int:
    """Run it; stop the servers whatever happens."""

    async def supervised() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await play_all()

    try:
        asyncio.run(supervised())
    except NotObserved as missing:
        print(f"  ✗ not observed: {missing}", file=sys.stderr)
        return 1
    except GovernanceError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 2
    except (asyncio.CancelledError, KeyboardInterrupt):
        print("stopped; the servers too", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
