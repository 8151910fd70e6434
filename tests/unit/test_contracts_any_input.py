"""Whatever is given as a contract: it is one, or there is one error."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from governance.contracts import ApprovalRule, Condition, FlowContract, StepRule, parse_canonical
from governance.contracts.base import ContractModel
from governance.errors import ContractInvalid

TEXT = st.text(max_size=6) | st.sampled_from(["a*", "/0/a", "4d", "actor", "{/0/a}", "finance"])
ANY = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none() | st.floats() | st.decimals() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def tables(model: type[ContractModel], **known: st.SearchStrategy[Any]) -> Any:
    keys = st.fixed_dictionaries(
        {}, optional={key: known.get(key, ANY) for key in model.known_keys()}
    )
    return st.tuples(keys, st.dictionaries(TEXT, ANY, max_size=1)).map(
        lambda two: {**two[1], **two[0]}
    )


STEPS = st.lists(tables(StepRule, when=st.lists(tables(Condition), max_size=2)), max_size=3)
APPROVALS = st.dictionaries(TEXT, tables(ApprovalRule), max_size=2)


@given(tables(FlowContract, steps=STEPS, approvals=APPROVALS))
def test_whatever_is_given_there_is_a_contract_or_one_error(data: dict[str, Any]) -> None:
    try:
        contract = FlowContract(**data)
    except ContractInvalid as caught:
        message = caught.message
    else:
        message = "FlowContract: "
        assert parse_canonical(contract.canonical()) == contract
    assert "pydantic" not in message.lower()
    assert all(line.startswith("FlowContract: ") for line in message.splitlines())
