"""Where a policy's attributes come from in a log."""

from __future__ import annotations

import pytest

from headway import AllowList, Limit, TieredLimit, When
from headway.analysis.logs.block import Block
from headway.analysis.replay.fields import Mapped, mapped, read_fields
from headway.policy.policy import Policy

BLOCK = Block({"time": [1, 2], "address": ["192.0.2.1", "192.0.2.2"], "user": ["ann", None], "path": ["/a", "/b"]}, 2)


def policy(*limits: object, exempt: AllowList | None = None) -> Policy:
    """A policy of these limits."""
    return Policy("p", limits, "p", exempt)  # type: ignore[arg-type]  # limits


def rows(found: Mapped) -> list[dict[str, object]]:
    """The attributes of the block's requests."""
    return list(found.rows(BLOCK))


@pytest.mark.parametrize(
    ("attribute", "field"),
    [("ip", "address"), ("account", "user"), ("route", "route"), ("user_agent", "agent"), ("method", "method")],
)
def test_usual_names_are_known(attribute: str, field: str) -> None:
    """An attribute called like a field, or as people call it, needs no mapping."""
    found = mapped([policy(Limit("a", "1/s", by=attribute))], {}, {})
    assert found.fields == {attribute: (field,)}
    assert found.needs == {"path" if field == "route" else field}


def test_a_request_without_a_field_lacks_the_attribute() -> None:
    """What a request does not have is left out, or is what stands for it."""
    limits = policy(Limit("a", "1/s", by=("ip", "account")))
    assert rows(mapped([limits], {}, {})) == [{"ip": "192.0.2.1", "account": "ann"}, {"ip": "192.0.2.2"}]
    found = mapped([limits], {}, {})
    absent = Mapped(found.fields, {}, {}, absent="-")
    assert rows(absent)[1] == {"ip": "192.0.2.2", "account": "-"}


def test_the_first_of_several_fields_says_which_it_is() -> None:
    """A user named like an address is not that address."""
    found = mapped([policy(Limit("a", "1/s", by="who"))], {"who": "user_or_address"}, {})
    assert rows(found) == [{"who": ("user", "ann")}, {"who": ("address", "192.0.2.2")}]


def test_fixed_and_missing_attributes() -> None:
    """--set gives every request the same value, and "-" says that the log does not have it."""
    tiers = TieredLimit("api", {"free": "1/s"}, by="ip", tier="plan", missing="free")
    assert rows(mapped([policy(tiers)], {}, {"plan": "pro"}))[0] == {"ip": "192.0.2.1", "plan": "pro"}
    assert rows(mapped([policy(tiers)], {"plan": "-"}, {}))[0] == {"ip": "192.0.2.1"}
    assert rows(mapped([policy(Limit("all", "1/s"))], {}, {})) == [{}, {}]


def test_a_column_that_is_no_field_is_carried_by_one_that_nobody_asks_for() -> None:
    """A plan or a phone in a JSON log is read by its name."""
    limits = policy(
        TieredLimit("api", {"free": "1/s"}, by="account", tier="plan"), When({"tenant": "x"}, Limit("b", "1/s"))
    )
    found = mapped([limits], {"plan": "meta.plan", "tenant": "tenant"}, {}, also=("referer",))
    assert found.columns == {"api_key": "meta.plan", "host": "tenant"}
    assert found.fields == {"account": ("user",), "plan": ("api_key",), "tenant": ("host",)}


def test_what_only_an_exemption_looks_at_need_not_be_there() -> None:
    """An attribute that an allow list asks for and the log does not know is left out; one that is known is taken."""
    limits = policy(Limit("a", "1/s", by="ip"), exempt=AllowList({"internal": "yes"}, {"user": "ann"}))
    found = mapped([limits], {}, {})
    assert found.fields == {"ip": ("address",), "user": ("user",)}


@pytest.mark.parametrize(
    ("given", "fixed", "said"),
    [
        ({}, {}, "asks for the attribute 'phone', and no field of a log is known by that name; map it: phone=FIELD"),
        (
            {"phone": "user", "fax": "user"},
            {},
            "no limit asks for the attribute 'fax'; attributes that are asked for: phone",
        ),
        ({}, {"mail": "x"}, "no limit asks for the attribute 'mail'"),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, str], fixed: dict[str, str], said: str) -> None:
    """An attribute from nowhere, or one that nobody asks for, is an error that says what is accepted."""
    with pytest.raises(ValueError, match=said):
        mapped([policy(Limit("a", "1/s", by="phone"))], given, fixed)


def test_too_many_columns_are_refused() -> None:
    """Columns that are no fields are few."""
    names = [f"a{number}" for number in range(6)]
    with pytest.raises(ValueError, match="no more columns"):
        mapped([policy(Limit("a", "1/s", by=names))], {name: f"column {name}" for name in names}, {})


def test_fields_are_read_from_their_names() -> None:
    """Joined fields come in their order; an unknown one is named with the place."""
    assert read_fields("user_or_address", "--caller") == ("user", "address")
    with pytest.raises(ValueError, match="--caller names 'ip'"):
        read_fields("ip", "--caller")


def test_networks_and_routes_are_made_of_addresses_and_paths() -> None:
    """An IPv6 address counts by its /64, as the adapters count it, and a path by its template."""
    block = Block(
        {
            "time": [1, 2, 3],
            "address": ["2001:db8::1", "::ffff:192.0.2.1", "no address"],
            "path": ["/items/17", "/items/18/parts", None],
        },
        3,
    )
    found = mapped([policy(Limit("a", "1/s", by=("ip", "route")))], {"ip": "network"}, {})
    assert found.needs == {"address", "path"}
    assert list(found.rows(block)) == [
        {"ip": "2001:db8::/64", "route": "/items/{id}"},
        {"ip": "192.0.2.1", "route": "/items/{id}/parts"},
        {"ip": "no address"},
    ]


def test_api_keys_are_secrets_but_not_what_they_carry() -> None:
    """A report does not show an API key as it is; a column that is only read in its place is shown."""
    keyed = policy(Limit("a", "1/s", by=("key", "who")))
    assert mapped([keyed], {"who": "api_key_or_address"}, {}).secrets == {"key", "who"}
    assert mapped([policy(Limit("a", "1/s", by="plan"))], {"plan": "meta.plan"}, {}).secrets == frozenset()
