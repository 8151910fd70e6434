"""Who takes part in the benchmarks."""

from __future__ import annotations

from governance import administration
from governance.contracts import FlowContract
from governance.db import Database

REALM = "default"


async def set_up(db: Database, contract: FlowContract) -> None:
    """Put a contract in force and give everybody their role."""
    digest = contract.digest
    await db.run(lambda c: administration.register_contract(c, REALM, contract, "ada"))
    await db.run(lambda c: administration.activate_contract(c, REALM, digest, "bert"))
    await db.run(lambda c: administration.grant_role(c, REALM, "olga", "operator", "ada"))
    await db.run(lambda c: administration.grant_role(c, REALM, "felix", "finance-approver", "ada"))
