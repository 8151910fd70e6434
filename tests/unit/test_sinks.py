"""Where checkpoints are kept: it only grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from governance.chain.note import Checkpoint, sign_note
from governance.chain.sinks import FileSink
from governance.errors import ChainBroken, SinkUnavailable
from tests.servers import LOG_ORIGIN
from tests.store.logs import SIGNER


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_sink_only_grows(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "kept")
    assert await sink.latest() is None

    def note(size: int, root: bytes = bytes(32)) -> bytes:
        return sign_note(Checkpoint(LOG_ORIGIN, size, root).text, [SIGNER])

    await sink.publish(5, note(5))
    await sink.publish(3, note(3))
    assert await sink.latest() == note(5)
    await sink.publish(5, note(5))
    with pytest.raises(ChainBroken, match="another tree of size 5"):
        await sink.publish(5, note(5, b"x" * 32))
    await sink.publish(11, note(11))
    (tmp_path / "kept" / "latest").unlink()
    assert await sink.latest() == note(11)
    assert names(tmp_path / "kept") == ["11.note", "3.note", "5.note"]


async def test_a_sink_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sink = FileSink(tmp_path / "file" / "kept")
    with pytest.raises(SinkUnavailable, match="cannot be kept"):
        await sink.publish(1, sign_note(Checkpoint(LOG_ORIGIN, 1, bytes(32)).text, [SIGNER]))
