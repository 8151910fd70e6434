"""Health of a container, for docker-compose.yml: exits 0 if it does its work, else 1.

worker: the Temporal server has seen this container ask for work within the last two minutes.
sealer: no entry has been waiting to be sealed for more than a minute.
"""

import asyncio
import os
import socket
import sys
from datetime import UTC, datetime, timedelta

STALE_WORKER = timedelta(minutes=2)  # a poll is held open by the server for up to one minute

LATE_ENTRIES = """
    SELECT count(*)
    FROM governance.entry AS e
    WHERE e.at < governance.clock() - interval '60 seconds'
      AND NOT EXISTS (SELECT FROM governance.leaf AS l WHERE l.entry = e.id)
"""


async def worker_problem() -> str | None:
    """What is wrong with the worker of this container, as the server sees it."""
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.client import Client

    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=os.environ["HEALTH_TASK_QUEUE"]),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    since = datetime.now(UTC) - STALE_WORKER
    here = f"@{socket.gethostname()}"  # the SDK's identity is <process id>@<host name>
    for poller in answer.pollers:
        seen = poller.last_access_time.ToDatetime(UTC)
        if poller.identity.endswith(here) and seen > since:
            return None
    return f"no poller on {os.environ['HEALTH_TASK_QUEUE']} from this host within two minutes"


async def sealer_problem() -> str | None:
    """What is wrong with the sealer, as the database shows it."""
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(os.environ["GOVERNANCE_DATABASE_URL"]) as connection:
        row = await (await connection.execute(LATE_ENTRIES)).fetchone()
    late = row[0] if row else 0
    return f"entries unsealed for more than a minute: {late}" if late else None


CHECKS = {"worker": worker_problem, "sealer": sealer_problem}


def main() -> int:
    """Runs the check named in the first argument."""
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        print(f"usage: health.py {'|'.join(CHECKS)}", file=sys.stderr)
        return 2
    problem = asyncio.run(CHECKS[sys.argv[1]]())
    if problem is not None:
        print(problem, file=sys.stderr)
    return 0 if problem is None else 1


if __name__ == "__main__":
    CODE = main()
    sys.stderr.flush()
    # The client's background threads may still run, and abort an ordinary end of the process.
    os._exit(CODE)
