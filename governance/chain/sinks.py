"""Where checkpoints are kept outside the database. A sink only grows."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from governance.chain.note import MAX_NOTE, Checkpoint, split_note
from governance.errors import ChainBroken, SinkUnavailable

_NUMBERED: Final = re.compile(r"(0|[1-9][0-9]{0,18})\.note")


class Sink(Protocol):
    """Keeps signed checkpoints where whoever can change the database cannot change them."""

    @property
    def name(self) -> str:
        """Names the sink in messages."""
        ...

    async def latest(self) -> bytes | None:
        """Return the note of the largest size ever published, or None.

        Raises:
            SinkUnavailable: The sink cannot be read.
        """
        ...

    async def publish(self, size: int, note: bytes) -> None:
        """Keep a note durably; the same one again changes nothing.

        Raises:
            ChainBroken: Another tree of this size was published.
            SinkUnavailable: The sink cannot be written.
        """
        ...


class FileSink:
    """A folder with one file per size, `<size>.note`, and `latest` for the largest.

    Files are never replaced, except `latest` by a larger size. Best on a disk that whoever runs
    the database cannot write to.
    """

    def __init__(self, directory: Path) -> None:
        """Keep the path; the folder is made by the first use."""
        self._directory: Final = directory

    @property
    def name(self) -> str:
        """The folder."""
        return str(self._directory)

    async def latest(self) -> bytes | None:
        """Return the note of the largest size in the folder, or None. See `Sink`."""
        return await asyncio.to_thread(self._latest)

    async def publish(self, size: int, note: bytes) -> None:
        """Write a note and see that it is on disk. See `Sink`."""
        await asyncio.to_thread(self._publish, size, note)

    def _latest(self) -> bytes | None:
        with self._errors():
            if not self._directory.is_dir():
                return None
            try:
                return _read(self._directory / "latest")
            except FileNotFoundError:
                sizes = self._sizes()
                return _read(self._directory / f"{max(sizes)}.note") if sizes else None

    def _publish(self, size: int, note: bytes) -> None:
        with self._errors():
            self._directory.mkdir(parents=True, exist_ok=True)
            folder = os.open(self._directory, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                self._write_numbered(size, note)
                os.fsync(folder)
                kept = self._latest()
                if kept is None or _checkpoint(kept).size <= size:
                    os.replace(self._written(note), self._directory / "latest")
                    os.fsync(folder)
            finally:
                os.close(folder)  # and with it the lock

    def _write_numbered(self, size: int, note: bytes) -> None:
        file = self._directory / f"{size}.note"
        try:
            kept = _read(file)
        except FileNotFoundError:
            os.rename(self._written(note), file)
            return
        if _checkpoint(kept) != _checkpoint(note):
            raise ChainBroken(f"{file} keeps another tree of size {size}; nothing was replaced")

    def _written(self, note: bytes) -> Path:
        """Write a complete file that nobody reads yet."""
        file = self._directory / f".{secrets.token_hex(8)}"
        with file.open("xb") as opened:
            opened.write(note)
            opened.flush()
            os.fsync(opened.fileno())
        return file

    def _sizes(self) -> list[int]:
        names = (_NUMBERED.fullmatch(path.name) for path in self._directory.iterdir())
        return [int(match[1]) for match in names if match]

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise SinkUnavailable(
                f"Checkpoints cannot be kept in {self.name}: {error.strerror or error}."
            ) from error


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MAX_NOTE + 1)


def _checkpoint(note: bytes) -> Checkpoint:
    return Checkpoint.parse(split_note(note)[0])
