"""A sealer that stops at one point of its duty and says so, to be killed there.

Run as `python -m tests.store.stuck_sealer DSN FOLDER STAGE`; the key comes from the environment.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from governance.chain.sealer import Sealer
from governance.chain.sinks import FileSink
from governance.signing import Signer, Verifier, load_signer

STAGES = ("sign", "publish", "record")


def stop_here() -> None:
    print("here", flush=True)
    time.sleep(600)


class StuckSigner:
    """Leaves are committed; nothing is signed."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    @property
    def verifier(self) -> Verifier:
        return self._signer.verifier

    def sign(self, message: bytes) -> bytes:
        stop_here()
        return self._signer.sign(message)


class StuckSink(FileSink):
    """The checkpoint is signed, and kept or not, but not on record."""

    def __init__(self, directory: Path, *, kept: bool) -> None:
        super().__init__(directory)
        self._kept = kept

    async def publish(self, size: int, note: bytes) -> None:
        if self._kept:
            await super().publish(size, note)
        stop_here()


async def main(dsn: str, folder: str, stage: str) -> None:
    signer: Signer = load_signer()
    sink = FileSink(Path(folder))
    if stage == "sign":
        signer = StuckSigner(signer)
    else:
        sink = StuckSink(Path(folder), kept=stage == "record")
    async with Sealer(dsn, signer, [sink]) as sealer:
        await sealer.seal_once()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
