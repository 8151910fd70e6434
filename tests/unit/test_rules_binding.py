"""Digests of inputs, step keys, and which calls are the same step again."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from governance.contracts import StepRule
from governance.rules.arguments import Payload
from governance.rules.binding import binds_digest, input_digest
from governance.rules.step_key import Call, CallTracker, idempotency_key, step_key

ALL = StepRule(activity="pay")
SOME = StepRule(activity="pay", binds=("/0/amount", "/0/payee"))
EXECUTION = uuid.UUID("6d9c1e5e-52f1-4d1c-9f3a-000000000001")


def json_payload(text: str, **metadata: bytes) -> Payload:
    return {"encoding": b"json/plain", **metadata}, text.encode()


PAYLOADS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["encoding", "messageType"]), st.binary(max_size=4)),
        st.binary(max_size=6),
    ),
    max_size=3,
)


@given(PAYLOADS, PAYLOADS)
def test_input_digest_tells_any_two_inputs_apart(one: Any, other: Any) -> None:
    assume(one != other)
    assert input_digest(one) != input_digest(other)


def test_input_digest_is_pinned() -> None:
    # Digests stand in histories: no release may change these.
    parts = [
        *((18).to_bytes(8, "big"), b"governance/input/1"),
        (1).to_bytes(8, "big"),
        *((10).to_bytes(8, "big"), b"json/plain"),
        b"\xff" * 8,
        *((1).to_bytes(8, "big"), b"5"),
    ]
    expected = hashlib.sha256(b"".join(parts))
    assert input_digest([json_payload("5")]) == expected.digest()
    assert (
        input_digest([]).hex() == "4147520771c61313eeb028ed6e6bae2cdbc423979886c72fec9aad4a973033ae"
    )


def test_input_digest_ignores_metadata_of_codecs() -> None:
    assert input_digest([json_payload("5")]) == input_digest([json_payload("5", trace=b"x")])
    assert input_digest([json_payload("5")]) != input_digest([json_payload("5", messageType=b"")])


def test_without_binds_every_byte_counts() -> None:
    payloads = [json_payload('{"amount":1}')]
    assert binds_digest(ALL, payloads) == input_digest(payloads)
    assert binds_digest(ALL, [json_payload('{"amount":1 }')]) != binds_digest(ALL, payloads)


PAY = '{"amount":10.50,"payee":"ACME","call_id":"1"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"amount":10.5,"payee":"ACME","call_id":"2"}',
        '{ "payee" : "\\u0041CME", "amount": 1.05e1 }',
    ],
)
def test_what_is_not_bound_does_not_count(text: str) -> None:
    assert binds_digest(SOME, [json_payload(text)]) == binds_digest(SOME, [json_payload(PAY)])


@pytest.mark.parametrize(
    "text",
    [
        '{"amount":10.51,"payee":"ACME"}',
        '{"amount":"10.50","payee":"ACME"}',
        '{"amount":10.50,"payee":"ACMe"}',
        '{"amount":10.50,"payee":null}',
        '{"amount":10.50}',
        '{"payee":"ACME"}',
        '{"amount":10.50,"payee":"missing"}',
        '{"amount":10.50,"payee":["ACME"]}',
        '{"amount":true,"payee":"ACME"}',
        '{"amount":10.50,"amount":10.50,"payee":"ACME"}',
        "{}",
        "[]",
        "null",
        "not json",
    ],
)
def test_every_bound_field_counts(text: str) -> None:
    assert binds_digest(SOME, [json_payload(text)]) != binds_digest(SOME, [json_payload(PAY)])


def test_where_a_bound_argument_is_unreadable_all_its_bytes_are_bound() -> None:
    raw = {"encoding": b"binary/plain"}
    digests = {
        binds_digest(SOME, [({"encoding": b"binary/plain"}, b"one")]),
        binds_digest(SOME, [({"encoding": b"binary/plain"}, b"two")]),
        binds_digest(SOME, [({"encoding": b"binary/protobuf"}, b"one")]),
        binds_digest(SOME, []),
    }
    assert len(digests) == 4
    one = binds_digest(SOME, [json_payload(PAY), (raw, b"one")])
    assert one == binds_digest(SOME, [json_payload(PAY), (raw, b"two")])


def test_the_empty_pointer_binds_the_whole_list() -> None:
    whole = StepRule(activity="pay", binds=("",))
    one = binds_digest(whole, [json_payload('{"a":1.0,"b":2}')])
    assert one == binds_digest(whole, [json_payload('{"b":2,"a":1}')])
    assert one != binds_digest(whole, [json_payload('{"b":2,"a":1}'), json_payload("1")])
    raw = ({"encoding": b"binary/plain"}, b"x")
    assert binds_digest(whole, [raw]) != binds_digest(whole, [(raw[0], b"y")])


def test_which_pointers_are_bound_counts() -> None:
    payloads = [json_payload('{"a":1,"b":1}')]
    steps = [StepRule(activity="pay", binds=binds) for binds in (("/0/a",), ("/0/b",), ("/0",))]
    assert len({binds_digest(step, payloads) for step in steps}) == 3


@given(
    st.lists(
        st.tuples(
            st.uuids(),
            st.integers(0, 3),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
            st.binary(min_size=32, max_size=32),
            st.integers(1, 3),
        ),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_step_keys_differ_where_any_part_does(two: list[Any]) -> None:
    keys = {step_key(*parts) for parts in two}
    assert len(keys) == 2
    assert len({idempotency_key(key) for key in keys}) == 2


def test_step_key_is_pinned() -> None:
    # Keys are stored and given to outside systems: no release may change these.
    key = step_key(EXECUTION, 0, "pay", b"\x01" * 32, 1)
    assert key.hex() == "c2ba9f2b5cb41901187aa9f5ba1fecbe26ef83c9efddde7ca17ba7a82ddd1c17"
    assert idempotency_key(key) == "ae049dc6-89a4-822f-896e-aee98f5b438d"
    assert uuid.UUID(idempotency_key(key)).variant == uuid.RFC_4122
    assert idempotency_key(key)[14] == "8"


@pytest.mark.parametrize(
    ("generation", "digest", "n"), [(-1, b"0" * 32, 1), (0, b"0" * 32, 0), (0, b"0", 1)]
)
def test_step_key_refuses_nonsense(generation: int, digest: bytes, n: int) -> None:
    with pytest.raises(ValueError, match="generation >= 0"):
        step_key(EXECUTION, generation, "pay", digest, n)


def test_a_call_after_a_failure_is_the_same_step_again() -> None:
    calls = CallTracker()
    assert calls.call("pay", b"d") == Call(1, 1)
    calls.failed("pay", b"d", 1)
    assert calls.call("pay", b"d") == Call(1, 2)
    calls.failed("pay", b"d", 1)
    assert calls.call("pay", b"d") == Call(1, 3)
    calls.succeeded("pay", b"d", 1)
    assert calls.call("pay", b"d") == Call(2, 1)


def test_a_call_while_one_is_open_is_the_next_step() -> None:
    calls = CallTracker()
    assert [calls.call("pay", b"d") for _ in range(3)] == [(1, 1), (2, 1), (3, 1)]
    calls.failed("pay", b"d", 2)
    calls.succeeded("pay", b"d", 1)
    assert calls.call("pay", b"d") == Call(2, 2)
    assert calls.call("pay", b"d") == Call(4, 1)


def test_of_several_failed_calls_the_lowest_comes_first() -> None:
    calls = CallTracker()
    for _ in range(3):
        calls.call("pay", b"d")
    for n in (3, 1, 2):
        calls.failed("pay", b"d", n)
    assert [calls.call("pay", b"d") for _ in range(4)] == [(1, 2), (2, 2), (3, 2), (4, 1)]


def test_other_steps_and_other_input_count_for_themselves() -> None:
    calls = CallTracker()
    calls.call("pay", b"d")
    calls.failed("pay", b"d", 1)
    assert calls.call("pay", b"e") == Call(1, 1)
    assert calls.call("refund", b"d") == Call(1, 1)
    assert calls.call("pay", b"d") == Call(1, 2)


def test_only_open_calls_end() -> None:
    calls = CallTracker()
    calls.call("pay", b"d")
    calls.succeeded("pay", b"d", 1)
    for end in (calls.succeeded, calls.failed):
        with pytest.raises(ValueError, match="call 1 of pay is not open"):
            end("pay", b"d", 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=40))
def test_no_key_is_open_twice_nor_called_after_its_success(moves: list[tuple[str, int]]) -> None:
    calls, open_calls, done = CallTracker(), list[Call](), set[int]()
    rounds: dict[int, int] = {}
    for move, pick in moves:
        if move == "a":
            call = calls.call("pay", b"d")
            assert call.n not in {other.n for other in open_calls} | done
            assert call.round == rounds.get(call.n, 0) + 1
            rounds[call.n] = call.round
            open_calls.append(call)
        elif open_calls:
            call = open_calls.pop(pick % len(open_calls))
            if move == "b":
                calls.succeeded("pay", b"d", call.n)
                done.add(call.n)
            else:
                calls.failed("pay", b"d", call.n)
