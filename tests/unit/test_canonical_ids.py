"""Ids have one text form."""

from __future__ import annotations

import uuid

import pytest

from governance import ids


def test_ids_have_one_text_form() -> None:
    one = ids.new_id()
    assert ids.parse_id(one.hex) == ids.parse_id(str(one)) == one
    assert one != ids.new_id()
    assert len(ids.new_nonce()) == 32
    assert int(ids.new_nonce(), 16) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 32,
        str(uuid.UUID(int=1)).upper().replace("0", "A"),
        "{" + str(uuid.UUID(int=1)) + "}",
        "urn:uuid:" + str(uuid.UUID(int=1)),
        "0000-0000000000000000000000000001",
        "0" * 32 + "\n",
    ],
)
def test_other_forms_of_ids_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        ids.parse_id(text)
