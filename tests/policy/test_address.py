"""The client's address: spellings, proxies, spoofing; each report of the field by its name."""

from __future__ import annotations

import ipaddress
import json
import logging
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import ConfigError
from headway.policy.address import fold, group, read_address
from headway.policy.client_address import UNSAFE_TRUST_EVERYONE, ClientAddress, Note, client_address
from headway.policy.forwarded import forwarded_nodes, list_entries
from headway.policy.request import RequestFacts

REPORTS = Path(__file__).parents[1] / "data" / "field_reports.jsonl"
BEHIND = client_address(["10.0.0.0/8", "fd00::/8"])
PROXY = "10.0.0.2"


def report(name: str) -> dict[str, dict[str, object]]:
    """One public report, as its file has it."""
    lines = REPORTS.read_text("utf-8").splitlines()
    return next(found for found in map(json.loads, lines) if found["id"] == name)


def facts(peer: str | None = PROXY, *xff: str, **others: str) -> RequestFacts:
    """A request with these lines of X-Forwarded-For and these other fields."""
    pairs = [("X-Forwarded-For", line) for line in xff]
    pairs += [(name.replace("_", "-"), value) for name, value in others.items()]
    return RequestFacts(peer=peer, headers=tuple(pairs))


def forwarded(value: str, peer: str = PROXY) -> str:
    """The key found for one Forwarded line behind the proxies."""
    return BEHIND(RequestFacts(peer=peer, headers=(("Forwarded", value),)))


def test_fs14_every_spelling_of_an_address_is_one_counter() -> None:
    """FS-14 (express-rate-limit#502): spellings of one address are one key, and an IPv6 subscriber is one /64."""
    told = report("FS-14")
    find = client_address(ipv6_prefix=told["reproduction"]["setting"]["ipv6_prefix"])  # type: ignore[index]
    found = [find(facts(peer)) for peer in told["reproduction"]["peers"]]  # type: ignore[attr-defined]
    expected = [key.split(" ")[0] for key in told["expected_right_behaviour"]["keys"]]  # type: ignore[attr-defined]
    assert found == expected


def test_fs15_an_invented_header_changes_nothing() -> None:
    """FS-15 (fastapi-limiter#10): without trusted proxies no header gives another address, whatever it is called."""
    find = client_address([])
    for number, name in product(range(1, 11), ("X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP")):
        value = f"for=10.0.0.{number}" if name == "Forwarded" else f"10.0.0.{number}"
        assert find(RequestFacts(peer="198.51.100.9", headers=((name, value),))) == "198.51.100.9"
    assert find(facts("10.0.0.1")) == "10.0.0.1"


def test_fs16_behind_named_proxies_everybody_has_their_own_address() -> None:
    """FS-16 (express-rate-limit#401): the walk from the right through the trusted proxies gives the client."""
    told = report("FS-16")
    find = client_address(told["reproduction"]["setting"]["trusted_proxies"])  # type: ignore[index]
    cases = told["reproduction"]["cases"]
    expected = [key.split(" ")[0] for key in told["expected_right_behaviour"]["keys"]]  # type: ignore[attr-defined]
    assert [find(facts(case["peer"], *case["xff"])) for case in cases] == expected  # type: ignore[attr-defined]


def test_fs16_one_warning_and_not_one_a_request(caplog: pytest.LogCaptureFixture) -> None:
    """FS-16: a forwarded address while no proxy is trusted is told once; and on every request as a note."""
    find = client_address()
    for _ in range(5):
        assert find.locate(facts("10.0.0.2", "203.0.113.7")).note is Note.UNTRUSTED
    with caplog.at_level(logging.WARNING, "headway"):
        for _ in range(5):
            find(facts("10.0.0.2", "203.0.113.7"))
    assert [record.getMessage() for record in caplog.records] == [f"client address: {Note.UNTRUSTED.value}"]
    caplog.clear()
    client_address("10.0.0.0/8")(facts("203.0.113.8", "6.6.6.6"))
    client_address()(facts("203.0.113.8"))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:80", "192.0.2.1"), (" 192.0.2.1\t", "192.0.2.1"),
        ("2001:DB8::1", "2001:db8::1"), ("[2001:db8::1]", "2001:db8::1"), ("[2001:db8::1]:65535", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"), ("[::ffff:c000:201]:8080", "192.0.2.1"), ("64:ff9b::192.0.2.1", "192.0.2.1"),
        ("64:ff9b::c000:201", "192.0.2.1"), ("64:ff9b:1::1", "64:ff9b:1::1"), ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%25en0]:80", "fe80::1"), ("::ffff:192.0.2.1%3", "192.0.2.1"), ("192.0.2.1:_hidden", "192.0.2.1"),
        ("::", "::"), ("::192.0.2.1", "::c000:201"),
    ],
)  # fmt: skip
def test_an_address_is_read_in_every_spelling(text: str, address: str) -> None:
    """Ports, brackets, scope ids, case, IPv4-mapped and NAT64 spellings are all the one address."""
    assert str(read_address(text)) == address


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "unknown", "_hidden", "garbage", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1:", "192.0.2.1:65536",
        "192.0.2.1:80:80", "192.0.2.1:-1", "192.0.2.1:8a", "[192.0.2.1]", "[2001:db8::1", "2001:db8::1]", "[2001:db8::1]80",
        "[2001:db8::1]:", "[]:80", "[[::1]]", "192.0.2.1/32", "2001:db8::/64", "3221225985", "0xC0000201", "１.2.3.4",
        '"192.0.2.1"', "192.0.2.1,", "192.0.2.1 192.0.2.2", "localhost", "1.2.3.4%eth0", "x" * 101, "[::1]:1\n",
    ],
)  # fmt: skip
def test_what_is_no_address_is_none(text: str) -> None:
    """Anything else is no address at all, not a guess."""
    assert read_address(text) is None


@given(st.ip_addresses(v=6), st.integers(1, 128))
def test_ipv6_addresses_are_grouped_by_their_network(address: ipaddress.IPv6Address, prefix: int) -> None:
    """The key of an IPv6 address is its network of that prefix, exactly as ipaddress has it."""
    if isinstance(fold(address), ipaddress.IPv6Address):
        assert group(address, prefix) == str(ipaddress.ip_network((address, prefix), strict=False))


@given(st.ip_addresses(v=4))
def test_ipv4_in_ipv6_clothes_is_ipv4(address: ipaddress.IPv4Address) -> None:
    """Mapped and NAT64 spellings never give a caller another counter."""
    for clothes in ("::ffff:0:0", "64:ff9b::"):
        dressed = ipaddress.IPv6Address(int(ipaddress.IPv6Address(clothes)) | int(address))
        assert client_address()(facts(str(dressed))) == str(address)


@pytest.mark.parametrize("prefix", [48, 56, 60, 64, 127, 128])
def test_the_prefix_is_configurable(prefix: int) -> None:
    """Two addresses share a counter exactly when they share the configured prefix."""
    find = client_address(ipv6_prefix=prefix)
    base = int(ipaddress.IPv6Address("2001:db8::"))
    inside = str(ipaddress.IPv6Address(base | (1 << (128 - prefix) >> 1)))
    outside = str(ipaddress.IPv6Address(base | 1 << (128 - prefix)))
    assert find(facts("2001:db8::")) == find(facts(inside))
    assert find(facts("2001:db8::")) != find(facts(outside))


@pytest.mark.parametrize("prefix", [0, 129, -1, "abc", "64", 64.0, True, None])
def test_a_prefix_that_cannot_be_right_is_refused(prefix: object) -> None:
    """FS-14: a prefix of 0, 129 or "abc" is refused at construction, with what is accepted."""
    with pytest.raises(ConfigError, match=r"ipv6_prefix: .* expected a whole number from 1 to 128"):
        client_address(ipv6_prefix=prefix)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "trusted",
    [
        "0.0.0.0/0", ["10.0.0.0/8", "0.0.0.0/0"], "::/0", ["0.0.0.0/1", "128.0.0.0/1"], ["::/1", "8000::/1"],
        "::ffff:0:0/96", "64:ff9b::/96", "*", ["10.0.0.0/8", "*"], [UNSAFE_TRUST_EVERYONE, "10.0.0.0/8"],
        "10.0.0.1/8", "10.0.0.0/33", "proxy.example", ["10.0.0.0/8", "nonsense"], True, -1, 33, [None], [3],
    ],
)  # fmt: skip
def test_trusting_everybody_is_never_said_by_accident(trusted: object) -> None:
    """Ranges that hold every address, in one piece or several, and what is no range at all, are refused."""
    with pytest.raises(ConfigError, match="trusted_proxies"):
        client_address(trusted)  # type: ignore[arg-type]


def test_the_message_says_which_spelling_is_meant() -> None:
    """Refusing 0.0.0.0/0 names the unsafe spelling; a range with bits beyond its prefix names the range."""
    with pytest.raises(ConfigError, match=UNSAFE_TRUST_EVERYONE):
        client_address("0.0.0.0/0")
    with pytest.raises(ConfigError, match=r"'10\.0\.0\.1/8' has bits beyond its prefix; expected 10\.0\.0\.0/8"):
        client_address("10.0.0.1/8")


def test_the_unsafe_spelling_believes_the_left_end() -> None:
    """Whoever trusts everyone, in so many words, gets the address that the caller chose."""
    find = client_address(UNSAFE_TRUST_EVERYONE)
    assert find(facts("203.0.113.9", "6.6.6.6, 203.0.113.7")) == "6.6.6.6"


@pytest.mark.parametrize(
    ("hops", "xff", "key"),
    [
        (0, ["6.6.6.6"], PROXY),
        (1, ["6.6.6.6, 203.0.113.7"], "203.0.113.7"),
        (2, ["6.6.6.6, 203.0.113.7, 192.0.2.9"], "203.0.113.7"),
        (2, ["6.6.6.6", "203.0.113.7", "192.0.2.9"], "203.0.113.7"),
        (3, ["203.0.113.7"], "203.0.113.7"),
        (2, ["6.6.6.6, garbage, 192.0.2.9"], "192.0.2.9"),
        (1, ["6.6.6.6, unknown"], PROXY),
        (1, [], PROXY),
        (1, [""], PROXY),
    ],
)
def test_a_number_of_proxies_is_counted_from_the_right(hops: int, xff: list[str], key: str) -> None:
    """With N proxies in front the N-th entry from the right counts; a malformed one stops at the last good hop."""
    assert client_address(hops)(facts(PROXY, *xff)) == key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("for=203.0.113.7", "203.0.113.7"),
        ("For=203.0.113.7;proto=http;by=203.0.113.43", "203.0.113.7"),
        ('proto=https;for="203.0.113.7:4711"', "203.0.113.7"),
        ('for="[2001:db8:cafe:1::17]:4711"', "2001:db8:cafe:1::/64"),
        ('for="[2001:db8:cafe:1::17]"', "2001:db8:cafe:1::/64"),
        ("for=6.6.6.6, for=203.0.113.7, for=10.1.1.1", "203.0.113.7"),
        ("for=6.6.6.6,for=203.0.113.7 ; proto=http", "203.0.113.7"),
        ('for="\\203.0.113.7"', "203.0.113.7"),
        ("for=unknown", PROXY),
        ("for=_SEVKISEK", PROXY),
        ('for="_gazonk:_port"', PROXY),
        ("for=203.0.113.7, for=unknown", PROXY),
        ("for=203.0.113.7, for=unknown, for=10.0.0.9", "10.0.0.9"),
        ("for=6.6.6.6;for=203.0.113.7", PROXY),
        ("by=203.0.113.7", PROXY),
        ("203.0.113.7", PROXY),
        ("for=", PROXY),
        ("", PROXY),
        ('for="evil, for=203.0.113.7', "203.0.113.7"),
        ('for="\\", for=203.0.113.7', "203.0.113.7"),
        ('host="a,b;for=6.6.6.6";for=203.0.113.7', "203.0.113.7"),
        ('for=6.6.6.6, for=203.0.113.7;host="x\\",for=1.1.1.1\\""', "203.0.113.7"),
        ('for="[fd00::1]", for="', PROXY),
        ("for=203.0.113.7, ", PROXY),
        ("f or=203.0.113.7", PROXY),
        ('for="203.0.113.7"x', PROXY),
    ],
)
def test_forwarded_is_read_from_the_right(value: str, key: str) -> None:
    """RFC 7239: names in any case, quotes, brackets, ports; unknown, obfuscated or malformed stops at the last hop."""
    assert forwarded(value) == key


LEFT = st.text(st.characters(max_codepoint=0xFF, exclude_characters="\r\n"), max_size=40)


@given(LEFT, st.booleans())
def test_a_spoofed_left_part_changes_nothing(left: str, one_line: bool) -> None:
    """Whatever a caller sends, what the trusted proxies appended gives the same address, in both syntaxes."""
    for name, right in (("X-Forwarded-For", "203.0.113.7, 10.9.9.9"), ("Forwarded", 'for=203.0.113.7, for="10.9.9.9"')):
        headers = ((name, f"{left}, {right}"),) if one_line else ((name, left), (name, right))
        assert BEHIND(RequestFacts(peer=PROXY, headers=headers)) == "203.0.113.7"
        assert client_address(2)(RequestFacts(peer=PROXY, headers=headers)) == "203.0.113.7"


@given(LEFT)
def test_no_header_breaks_the_walk(value: str) -> None:
    """Any text at all gives an address or stops at the proxy; nothing is raised."""
    for name in ("X-Forwarded-For", "Forwarded"):
        for find in (BEHIND, client_address(UNSAFE_TRUST_EVERYONE)):
            assert find(RequestFacts(peer=PROXY, headers=((name, value),)))


def test_a_long_list_of_trusted_addresses_ends() -> None:
    """No more than 32 hops are walked, so that a list of invented proxies costs little."""
    assert BEHIND.locate(facts(PROXY, ", ".join(["10.0.0.7"] * 100_000))).hops == 32
    hostile = 'for="' + '\\"' * 50_000
    assert forwarded(hostile) == PROXY


def test_the_two_headers_must_agree_or_one_is_named() -> None:
    """Where both standard fields are there and disagree neither is believed, unless the operator says which counts."""
    both = facts(PROXY, "203.0.113.7", Forwarded="for=6.6.6.6")
    assert BEHIND.locate(both).key == PROXY
    assert BEHIND.locate(both).note is Note.CONFLICT
    assert client_address("10.0.0.0/8", header="X-Forwarded-For")(both) == "203.0.113.7"
    assert client_address("10.0.0.0/8", header="forwarded")(both) == "6.6.6.6"
    assert BEHIND(facts(PROXY, "203.0.113.7", Forwarded="for=203.0.113.7")) == "203.0.113.7"
    assert (
        client_address("10.0.0.0/8", header="CF-Connecting-IP")(facts(PROXY, CF_Connecting_IP="6.6.6.6")) == "6.6.6.6"
    )
    with pytest.raises(ConfigError, match="is no header field"):
        client_address(header="X Forwarded")


@pytest.mark.parametrize("peer", [None, "", "/run/app.sock", "@abstract", "\0abstract", "unix:", "unix"])
def test_a_unix_socket_has_a_name(peer: str | None) -> None:
    """A peer without an address is "unix"; it is a trusted proxy only where it is named as one, or counted."""
    assert client_address()(facts(peer, "203.0.113.7")) == "unix"
    assert client_address("10.0.0.0/8")(facts(peer, "203.0.113.7")) == "unix"
    assert client_address(["unix"])(facts(peer, "6.6.6.6, 203.0.113.7")) == "203.0.113.7"
    assert client_address(1)(facts(peer, "6.6.6.6, 203.0.113.7")) == "203.0.113.7"


def test_a_peer_that_is_no_address_is_itself() -> None:
    """A test client's made-up peer is counted by its own text, and is never a trusted proxy."""
    assert BEHIND(facts("testclient", "203.0.113.7")) == "testclient"


def test_trust_sees_through_clothes() -> None:
    """A proxy that connects by an IPv4-mapped address is the proxy that was named, and ranges fold alike."""
    assert BEHIND(facts("::ffff:10.0.0.2", "203.0.113.7")) == "203.0.113.7"
    assert client_address("::ffff:10.0.0.0/104")(facts(PROXY, "203.0.113.7")) == "203.0.113.7"
    assert BEHIND(facts("[fd00::2%eth0]:443", "203.0.113.7, ::ffff:10.3.3.3")) == "203.0.113.7"


def test_proxies_may_be_one_text() -> None:
    """A text with commas, as an environment variable has it, is the list."""
    assert client_address(" 10.0.0.0/8 , fd00::/8,unix, 192.0.2.1") == client_address(
        ["10.0.0.0/8", "fd00::/8", "unix", "192.0.2.1/32"]
    )
    assert client_address("") == client_address(0) == ClientAddress()


def test_lists_are_split_from_the_right() -> None:
    """Entries come last line first and last entry first, empty ones included."""
    assert list(list_entries(("a, b", ",c,"))) == ["", "c", "", "b", "a"]
    assert list(forwarded_nodes(("for=a, for=b", "for=c"))) == ["c", "b", "a"]
