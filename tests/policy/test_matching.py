"""Conditions on attributes: values, globs, addresses and ranges, bounds, and what is missing."""

from __future__ import annotations

import enum
import ipaddress
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import AttributeMissing, AttributeUnexpected, LimitError
from headway.policy.matching import AnyOf
from headway.policy.values import Values


def met(wanted: object, **attributes: object) -> bool:
    """Whether a request meets conditions."""
    return AnyOf.of(wanted, "when").met(attributes, "l")  # type: ignore[arg-type]  # as a user may write it


class Plan(enum.Enum):
    """A plan, as an application may have it."""

    PRO = "pro"
    FREE = "free"


class Level(enum.IntEnum):
    """A number with a name."""

    HIGH = 7


ID = uuid.UUID(int=7)
YES = [
    ("POST", "POST"), (42, "42"), ("42", 42), (True, True), (True, "true"), (1.5, "1.5"), (str(ID), ID), (ID, str(ID)),
    (["POST", "PUT"], "PUT"), (("a", "b"), "b"), ({"b"}, "b"),
    ("pro-*", "pro-eu"), ("pro-*", "pro-"), ("*", ""), ("*", "x"), ("*.example.org", "a.b.example.org"),
    ("a*b*c", "abxbc"), ("a*a", "aa"), ("/items/*/edit", "/items/7/edit"),
    ("10.0.0.0/8", "10.255.0.1"), ("10.0.0.0/8", "::ffff:10.0.0.1"), ("10.0.0.0/8", "10.0.0.1:5678"),
    ("10.0.0.0/8", ipaddress.ip_address("10.1.2.3")), ("10.0.0.0/8", "10.1.0.0/16"), ("0.0.0.0/0", "1.2.3.4"),
    ("192.0.2.1", "192.0.2.1"), ("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::/32", "2001:db8:1::1"),
    ("2001:db8::/32", "2001:DB8:0:0::/64"), ("2001:db8::1", "2001:0db8:0::0001"), ("::/0", "::1"),
    (["10.0.0.0/8", "eve"], "eve"),
    ({"is": ["a", "b"]}, "a"), ({"not": ["a", "b"]}, "c"), ({"not": "a*"}, "b"), ({"is": "a*", "not": "ab"}, "ac"),
    ({"at_least": 3}, 3), ({"at_least": 3}, "3"), ({"above": 3}, 3.5), ({"at_most": 3}, "3.0"), ({"below": 3}, -1),
    ({"at_least": 1, "below": 10}, 9), ({"at_least": 10**30}, 10**30), ({"above": 0}, "1e3"),
    ({"missing": False}, "x"), ({"is": "x", "missing": True}, "x"),
    ("10.0.*", "::ffff:10.0.3.4"), ("10.0.*", "10.0.3.4:80"), ("10.0.*", ipaddress.ip_address("10.0.3.4")),
    ("2001:db8:*", "2001:DB8:0::1"), ("pro", Plan.PRO), (7, Level.HIGH), ({"at_least": 3}, Decimal("3.5")),
    ({"at_least": Decimal("0.1")}, 1), ({"at_least": 5, "at_most": 5}, 5), ("2024-01-02", "2024-01-02"),
]  # fmt: skip
NO = [
    ("POST", "post"), ("POST", "POS"), (42, "042"), (True, "True"), (1, True), ("a", b"a"), ("a", ("a",)),
    ("pro-*", "xpro-eu"), ("*.example.org", "example.org"), ("a*b*c", "ac"), ("a*b*b*c", "abc"), ("*a*a*", "a"), ("a*a", "a"), ("*a", "ab"), ("a.c", "abc"),
    ("10.0.0.0/8", "11.0.0.1"), ("10.0.0.0/8", "10.evil"), ("10.0.0.0/16", "10.0.0.0/8"), ("10.0.0.0/8", "::1"),
    ("192.0.2.1", "192.0.2.10"), ("2001:db8::1", "2001:db8::/64"), ("::/0", "1.2.3.4"), ("0.0.0.0/0", "::1"),
    ({"is": ["a", "b"]}, "c"), ({"not": ["a", "b"]}, "b"), ({"not": "a*"}, "ab"), ({"is": "a*", "not": "ab"}, "ab"),
    ({"at_least": 3}, 2), ({"above": 3}, 3), ({"at_most": 3}, 4), ({"below": 3}, 3), ({"at_least": 1, "below": 10}, 10),
    ({"missing": True}, "x"), ({"is": "x", "missing": True}, "y"), ({"not": "10.0.*"}, "::ffff:10.0.3.4"),
    ("10.0.*", "::ffff:10.1.3.4"), ("10.0.*", "2001:db8::1"), ("pro", Plan.FREE),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "value"), YES, ids=repr)
def test_what_meets_a_condition(wanted: object, value: object) -> None:
    """Values are compared by their text, globs as a whole, addresses by their ranges, numbers by their bounds."""
    assert met({"x": wanted}, x=value)


@pytest.mark.parametrize(("wanted", "value"), NO, ids=repr)
def test_what_does_not_meet_a_condition(wanted: object, value: object) -> None:
    """Case counts, a boolean is no number, and bytes and tuples equal no text."""
    assert not met({"x": wanted}, x=value)


def test_all_of_one_mapping_one_of_several() -> None:
    """All conditions of a mapping must be met; of several mappings, one."""
    both = {"method": ["POST", "PUT"], "plan": "free"}
    assert met(both, method="PUT", plan="free")
    assert not met(both, method="PUT", plan="pro")
    assert met([both, {"ip": "10.0.0.0/8"}], method="GET", plan="pro", ip="10.0.0.1")
    assert not met([], method="PUT")


def test_a_missing_attribute_is_an_error_where_all_hangs_on_it() -> None:
    """Nothing that is missing is taken for a yes or a no, in whatever order the conditions stand; None is missing."""
    for wanted in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}):
        with pytest.raises(AttributeMissing, match="limit 'l' depends on 'b'") as caught:
            met(wanted, a=1)
        assert caught.value.attribute == "b"
        with pytest.raises(AttributeMissing):
            met(wanted, a=1, b=None)
        assert not met(wanted, a=2)
    for alternatives in ([{"a": "1"}, {"b": "2"}], [{"b": "2"}, {"a": "1"}]):
        assert met(alternatives, a=1)
        with pytest.raises(AttributeMissing):
            met(alternatives, a=2)


def test_what_a_missing_attribute_means_can_be_stated() -> None:
    """``missing`` says it; with nothing else asked for, the condition is only whether it is there."""
    assert met({"a": {"is": "x", "missing": True}})
    assert not met({"a": {"is": "x", "missing": False}})
    assert met({"a": {"missing": True}}, b=1)
    assert not met({"a": {"missing": False}}, b=1)


@pytest.mark.parametrize("value", ["abc", "", "nan", True, "1_0", b"1", float("nan"), "１"])
def test_what_is_no_number_is_not_compared(value: object) -> None:
    """A value that cannot be compared is an error that names it: a limit is not silently left out."""
    with pytest.raises(AttributeUnexpected, match=r"limit 'l': attribute 'size' is .*expected a number") as caught:
        met({"size": {"at_least": 1}}, size=value)
    assert (caught.value.attribute, caught.value.limit) == ("size", "l")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({}, "when names no attribute"),
        ([{}], r"when\[0\] names no attribute"),
        ("POST", "when is 'POST', a string; expected a table of conditions"),
        ([{"a": "1"}, "b"], r"when\[1\] is 'b', a string"),
        ({"client-ip": "a"}, r"when\['client-ip'\] names 'client-ip'; an attribute is a name like"),
        ({"cost": 1}, "which is a parameter of hit"),
        ({3: 1}, r"\['3'\] is 3, an integer; expected the name of an attribute"),
        ({"a": None}, r"when\['a'\] is None; expected a value, a list of values, or a table with any of is, not"),
        ({"a": [None]}, r"when\['a'\]\[0\] is None"),
        ({"a": ["x", ["y"]]}, r"when\['a'\]\[1\] is an array; expected a string, a number, true or false"),
        ({"a": []}, r"when\['a'\] is empty, so nothing would meet it; expected a value, a list of values"),
        ({"a": {"not": ()}}, r"when\['a'\]\['not'\] is empty"),
        ({"a": date(2026, 1, 1)}, r"when\['a'\] is 2026-01-01, a date or time; expected a value"),
        ({"a": ["x", time(10)]}, r"when\['a'\]\[1\] is 10:00:00, a date or time"),
        ({"a": {"is": datetime(2026, 1, 1, tzinfo=UTC)}}, "a date or time"),
        ({"a": {}}, "asks for nothing"),
        ({"a": {"at_lest": 3}}, "unknown test 'at_lest'.*did you mean 'at_least'"),
        ({"a": {"at_least": "3"}}, r"\['at_least'\] is '3', a string; expected a number"),
        ({"a": {"below": True}}, "expected a number"),
        ({"a": {"below": float("nan")}}, "expected a number"),
        ({"a": {"missing": "yes"}}, "expected true or false"),
        ({"a": b"x"}, r"when\['a'\] is b'x', a value of type bytes; expected"),
        ({"a": {"at_least": 5, "below": 5}}, r"when\['a'\] asks for at_least = 5 and below = 5; no number is both"),
        ({"a": {"above": 5, "at_most": 5}}, "no number is both"),
        ({"a": {"at_least": 1, "above": 7, "below": 9, "at_most": 6}}, "above = 7 and at_most = 6"),
        ({"ip": "10.0.0.0-10.0.0.9"}, "is no address range"),
        ({"ip": "10.0.0.1 - 20"}, "is no address range"),
        ({"ip": "10.0.0.0/"}, "is no address range"),
        ({"ip": "2001:db8::/"}, "is no address range"),
        ({"ip": "10.0.0.1/8"}, "'10.0.0.1/8' has bits beyond its prefix; expected 10.0.0.0/8"),
        ({"ip": ["::1", "10.0.0.0/33"]}, r"\['ip'\]\[1\] '10.0.0.0/33' is no address range"),
        ({"ip": "10.0/8"}, "is no address range"),
        ({"ip": "2001:db8::/129"}, "is no address range"),
    ],
)
def test_a_condition_that_cannot_be_right_says_where(wanted: object, says: str) -> None:
    """The message names the place, the value and what is accepted."""
    with pytest.raises(LimitError, match=says):
        met(wanted)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_globs_agree_with_their_definition(glob: str, text: str) -> None:
    """A star stands for any characters and nothing else is special: the same as trying every way to split the text."""

    def fits(glob: str, text: str) -> bool:
        if not glob:
            return not text
        if glob[0] == "*":
            return any(fits(glob[1:], text[skipped:]) for skipped in range(len(text) + 1))
        return text[:1] == glob[0] and fits(glob[1:], text[1:])

    assert (text in Values.of(glob)) == fits(glob, text)


@given(st.lists(st.tuples(st.ip_addresses(v=4), st.integers(0, 32)), min_size=1, max_size=5), st.ip_addresses(v=4))
def test_ranges_agree_with_the_standard_library(ranges: list[tuple[object, int]], address: object) -> None:
    """An address is in a list of ranges exactly if it is in one of them."""
    networks = [ipaddress.ip_network(f"{base}/{prefix}", strict=False) for base, prefix in ranges]
    assert (str(address) in Values.of([str(network) for network in networks])) == any(
        address in network for network in networks
    )


def test_conditions_say_what_they_are() -> None:
    """People read them as a sentence."""
    wanted = {
        "method": ["POST", "PUT"],
        "size": {"above": 3, "missing": True},
        "a": {"missing": False},
        "b": {"not": "x"},
    }
    assert str(AnyOf.of([wanted, {"ip": "10.0.0.0/8"}], "when")) == (
        "method is POST or PUT and size is above 3 or missing and a is given and b is not x, or ip is 10.0.0.0/8"
    )
    assert str(Values.of(list(range(8)))) == "0, 1, 2, 3, 4 or 3 more"
