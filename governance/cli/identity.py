"""Who sits at this terminal, as far as a local command can know it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from governance.decisions import Decider

METHOD: Final = "cli"
"""The door's name on the record."""


def system_user() -> str:
    """The user that this process runs as: from the system's list, not from the environment."""
    number = os.getuid()
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def submitted_by() -> str:
    """What the record says of who sent it, whoever was claimed: `os:<user>@<host>`."""
    return f"os:{system_user()}@{socket.gethostname()}"


def person(claimed: str | None) -> str:
    """The person who acts: as claimed, else the system user."""
    return claimed or system_user()


def decider(claimed: str | None) -> Decider:
    """The person who decides, with what is known of them."""
    from governance.decisions import Decider

    return Decider(person(claimed), METHOD, submitted_by())
