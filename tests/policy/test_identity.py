"""Who is calling, and what happens where nobody says so."""

from __future__ import annotations

from uuid import UUID

import pytest

from headway.errors import AttributeMissing, ConfigError
from headway.policy.client_address import client_address
from headway.policy.identity import (
    OTHER_METHOD,
    UNMATCHED,
    Identify,
    Missing,
    Source,
    by_account,
    by_api_key,
    by_callable,
    by_cookie,
    by_header,
    by_method,
    by_path_param,
    by_route,
)
from headway.policy.request import RequestFacts

FULL = RequestFacts(
    method="post",
    route="/items/{id}",
    path="/items/7",
    headers=(("X-API-Key", " k1 "), ("Authorization", "Bearer t0k"), ("Cookie", 'a=1; session="s1"; session=s2')),
    path_params={"id": 7},
    peer="203.0.113.7",
    account=UUID(int=5),
)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (by_header("x-api-key"), "k1"),
        (by_header("X-Api-Key"), "k1"),
        (by_api_key(), "k1"),
        (by_api_key("Authorization"), "t0k"),
        (by_cookie("session"), "s1"),
        (by_path_param("id"), 7),
        (by_account(), UUID(int=5)),
        (by_method(), "POST"),
        (by_route(), "/items/{id}"),
        (by_callable(lambda facts: facts.path_params["id"]), 7),
    ],
)
def test_every_source_reads_its_part(source: Source, value: object) -> None:
    """Header, API key, cookie, path parameter, account, method, route and any callable each give their value."""
    assert source(FULL) == value


@pytest.mark.parametrize(
    "source",
    [
        by_header("x-none"),
        by_api_key("x-none"),
        by_cookie("x"),
        by_path_param("x"),
        by_account(),
        by_callable(lambda _: ""),
    ],
)
@pytest.mark.parametrize("empty", [RequestFacts(), RequestFacts(headers=(("X-None", "  "), ("Cookie", "x")))])
def test_an_empty_value_is_a_missing_one(source: Source, empty: RequestFacts) -> None:
    """An absent, empty or blank value identifies nobody."""
    assert source(empty) is None


def test_the_raw_url_never_makes_a_counter() -> None:
    """/items/1 and /items/2 are one route, and URLs that no route matched are one too."""
    urls = [RequestFacts(path=f"/items/{number}", route="/items/{id}") for number in (1, 2)]
    assert {by_route()(facts) for facts in urls} == {"/items/{id}"}
    assert {by_route()(RequestFacts(path=f"/x{number}")) for number in range(5)} == {UNMATCHED}


def test_invented_methods_are_one_counter() -> None:
    """Methods are compared without regard to case, and invented ones share a counter."""
    assert by_method()(RequestFacts(method="get")) == "GET"
    assert {by_method()(RequestFacts(method=f"FOO{number}")) for number in range(5)} == {OTHER_METHOD}


def test_a_header_that_disagrees_with_itself_is_no_identity() -> None:
    """Two different values of one header are missing, not the first, the last or both: a caller could vary them."""
    twice = RequestFacts(headers=(("X-Api-Key", "mine"), ("x-api-key", "other")))
    assert by_header("x-api-key")(twice) is None
    assert by_header("x-api-key")(RequestFacts(headers=(("X-Api-Key", "mine"), ("x-api-key", "mine ")))) == "mine"


def test_a_missing_identity_falls_back_to_the_address() -> None:
    """With "address" the request is counted by where it comes from, apart from whoever sends that text as a key."""
    identify = Identify({"api_key": by_api_key(missing="address"), "ip": client_address("10.0.0.0/8")})
    behind = RequestFacts(peer="10.0.0.2", headers={"X-Forwarded-For": "203.0.113.7"})  # type: ignore[arg-type]
    assert identify(behind).attributes == {"api_key": ("address", "203.0.113.7"), "ip": "203.0.113.7"}
    posing = RequestFacts(peer="10.0.0.2", headers=(("X-Api-Key", "203.0.113.7"),))
    assert identify(posing).attributes["api_key"] != identify(behind).attributes["api_key"]
    other = Identify({"api_key": by_api_key(missing="address")}, client_address(1))
    assert other(behind).attributes == {"api_key": ("address", "203.0.113.7")}


def test_a_missing_identity_may_refuse() -> None:
    """With "refuse" the request is refused, and every attribute that refuses it is named."""
    identify = Identify(
        {"a": by_account(missing=Missing.REFUSE), "b": by_cookie("b", missing="refuse"), "m": by_method()}
    )
    found = identify(RequestFacts())
    assert found.refused == ("a", "b")
    assert found.attributes == {"m": "GET"}
    assert identify(RequestFacts(account="me", cookies={"b": "1"})).refused == ()


def test_a_missing_identity_is_an_error_unless_something_else_is_stated() -> None:
    """Without a choice a missing identity raises, naming the attribute, what was looked for and the choices."""
    identify = Identify({"ip": client_address(), "key": by_header("x-api-key"), "tenant": lambda facts: None})
    with pytest.raises(AttributeMissing) as raised:
        identify(RequestFacts(peer="203.0.113.7"))
    assert raised.value.attribute == "key"
    assert "it has: ip" in str(raised.value)
    assert raised.value.__notes__ == [
        "header x-api-key is absent; state missing='address' or missing='refuse' if it may be"
    ]
    with pytest.raises(AttributeMissing, match="tenant"):
        identify(RequestFacts(peer="203.0.113.7", headers=(("x-api-key", "k"),)))


def test_only_what_is_asked_for_is_read() -> None:
    """Attributes that no limit asks for are neither read nor missed."""
    identify = Identify({"key": by_header("x-api-key"), "ip": client_address(), "a": by_account(missing="refuse")})
    found = identify(RequestFacts(peer="203.0.113.7"), ("ip", "another"))
    assert (found.attributes, found.refused) == ({"ip": "203.0.113.7"}, ())


@pytest.mark.parametrize("missing", ["skip", "", None, "Address", "unlimited"])
def test_an_unknown_choice_is_refused(missing: str) -> None:
    """There is no choice that leaves a request without a limit; the message names those that exist."""
    for make in (by_account, by_api_key, lambda **options: by_header("x", **options)):
        with pytest.raises(ConfigError, match="expected one of address, refuse, error"):
            make(missing=missing)


def test_a_source_that_cannot_be_called_is_refused() -> None:
    """A source that is no source and no function is refused at construction, with its attribute's name."""
    with pytest.raises(ConfigError, match="api_key: 'x-api-key'; expected a source such as"):
        Identify({"api_key": "x-api-key"})  # type: ignore[dict-item]


def test_values_that_are_falsy_but_say_something_are_kept() -> None:
    """The number 0 identifies somebody; only nothing and an empty text do not."""
    assert by_path_param("id")(RequestFacts(path_params={"id": 0})) == 0


def test_cookies_come_from_the_framework_or_the_header() -> None:
    """Cookies that the adapter gives win; otherwise the field is read, first match first."""
    header = (("Cookie", "a=1; b"), ("cookie", "c=3; a=9"))
    assert [RequestFacts(headers=header).cookie(name) for name in "abc"] == ["1", None, "3"]
    assert RequestFacts(headers=header, cookies={}).cookie("a") is None


def test_request_facts_take_mappings_and_pairs() -> None:
    """Headers may be given as pairs or as a mapping; names are compared without regard to case."""
    for headers in ({"X-A": "1"}, [("x-a", "1")], iter((("X-a", "1"),))):
        assert RequestFacts(headers=headers).lines("x-A") == ("1",)  # type: ignore[arg-type]
