"""What a limit would have refused, on a website's log and on small ones."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from analysis.logs.made_logs import denials, line, stream, visits, website_log
from headway.analysis.replay import FIELDS, Replay, UnparsedLine, check_fields, replay_log
from headway.core.limit import Limit

OFFICE, ABUSER = "203.0.113.50", "198.51.100.66"


def replay(log: io.BytesIO, quota: str, algorithm: str | None = None, by: str = "address", **options: object) -> Replay:
    """Replay with one limit."""
    return replay_log(log, Limit("test", quota, by=by, algorithm=algorithm), **options)  # type: ignore[arg-type]  # options pass through


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-log"])
@pytest.mark.parametrize("count", [1, 5, 7, 10, 12])
def test_a_websites_log(count: int, algorithm: str) -> None:
    """A log gives the figures that exact fractions give, and every line of it parses."""
    found = replay(io.BytesIO(website_log()), f"{count} per 60s", algorithm)
    assert (found.lines, found.unparsed, found.out_of_order) == (3456, 0, 0)
    assert (found.requests, found.keys) == (3456, 520)
    assert (found.denied, found.keys_denied) == denials(count, 60, algorithm)
    assert found.denied or count > 5


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window"])
def test_the_requests_of_one_form(algorithm: str) -> None:
    """Only matching requests are decided and counted."""
    found = replay(io.BytesIO(website_log()), "1 per 60s", algorithm, match="POST /join_form")
    matching = sum(request.startswith("POST /join_form ") for _, _, request in visits())
    assert (found.lines, found.requests) == (3456, matching)
    assert (found.denied, found.keys_denied) == denials(1, 60, algorithm, "POST /join_form")


def office() -> io.BytesIO:
    """Thirty people behind one address and one abuser at another, each with 60 requests in a minute."""
    people = [
        line(at + second, OFFICE, user=f"u{at}", agent=f"browser {at % 7}") for at in range(30) for second in (0, 30)
    ]
    return stream(sorted(people + [line(at, ABUSER) for at in range(60)], key=lambda text: text.split(b"[")[1]))


@pytest.mark.parametrize(
    ("quota", "by", "denied"),
    [
        ("20 per 60s", "address", {OFFICE: 40, ABUSER: 40}),
        ("60 per 60s", "address", {}),
        ("20 per 60s", "user_or_address", {ABUSER: 40}),
    ],
)
def test_an_office_behind_one_address_beside_an_abuser(quota: str, by: str, denied: dict[str, int]) -> None:
    """Keyed by the user where there is one and the address else, an office passes and an abuser does not."""
    found = replay(office(), quota, "fixed-window", by)
    assert {key.key[0]: key.denied for key in found.most_denied} == denied
    assert found.denied == sum(denied.values())
    assert found.keys_denied == len(denied)


def test_how_many_people_are_behind_a_refused_address() -> None:
    """Beside each refused key stands how many different users, or agents, its requests had."""
    users = replay(office(), "20 per 60s", "fixed-window", behind="user")
    assert {key.key[0]: key.behind for key in users.most_denied} == {OFFICE: 30, ABUSER: 1}
    agents = replay(office(), "20 per 60s", "fixed-window", behind="agent")
    assert {key.key[0]: key.behind for key in agents.most_denied} == {OFFICE: 7, ABUSER: 1}


def test_colleagues_who_open_the_login_page_together() -> None:
    """Ten at once under "5 per 20 s" are five too many."""
    log = stream(line(at, OFFICE) for at in range(10))
    assert replay(log, "5 per 20s", "fixed-window").denied == 5


def test_fixed_windows_begin_at_multiples_of_the_period() -> None:
    """Twice the count passes around a boundary that the clock sets, not the first request."""
    times = [59, 59, 60, 60, 119, 120]
    assert replay(stream(line(at) for at in times), "2 per 60s", "fixed-window").denied == 1
    assert replay(stream(line(at) for at in times), "2 per 60s", "anchored-window").denied == 2


def test_a_hit_stops_counting_after_exactly_a_period() -> None:
    """Under the sliding log, one second early is refused and the very second is not."""
    assert replay(stream([line(0), line(59)]), "1 per 60s", "sliding-log").denied == 1
    assert replay(stream([line(0), line(60)]), "1 per 60s", "sliding-log").denied == 0


def test_a_calendar_quota_turns_at_the_zones_midnight() -> None:
    """Berlin's day of 25 October 2015 begins at 22:00 UTC and has 25 hours."""
    log = [line(-2 * 3600), line(0), line(22 * 3600 + 3599), line(23 * 3600)]
    assert replay(stream(log), "1/day in Europe/Berlin").denied == 2
    assert replay(stream(log[:1] + log[3:]), "1/day in Europe/Berlin").denied == 0


def test_a_count_of_zero_denies_all() -> None:
    """A quota of 0 refuses every request and every key."""
    found = replay(io.BytesIO(website_log()), "0/s")
    assert (found.denied, found.keys_denied, found.keys) == (3456, 520, 520)


def test_zones_are_heeded() -> None:
    """Lines with different offsets are one clock."""
    first = line(0)
    same_instant_later = first.replace(b"00:00:00 +0000", b"02:00:12 +0200")
    found = replay(stream([first, same_instant_later]), "1 per 12s")
    assert (found.denied, found.out_of_order) == (0, 0)
    assert replay(stream([first, same_instant_later.replace(b":12", b":11")]), "1 per 12s").denied == 1


def test_lines_out_of_order_are_decided_at_the_latest_time() -> None:
    """A line with an earlier time than one before it is counted, and the clock does not go back for it."""
    times = [0, 100, 40, 40, 99, 100, 100, 99]
    found = replay(stream(line(at) for at in times), "1 per 60s")
    assert (found.out_of_order, found.denied) == (4, 6)
    assert replay(stream([line(0), line(100), line(40)]), "1 per 60s").denied == 1


def test_lines_that_do_not_match_move_the_logs_clock() -> None:
    """Order is the log's, whatever is asked of it: its clock is every line's."""
    log = [line(0, request="POST /a HTTP/1.1"), line(100), line(10, request="POST /a HTTP/1.1")]
    found = replay(stream(log), "1 per 60s", match="POST /a")
    assert (found.requests, found.out_of_order, found.denied) == (2, 1, 0)


def test_the_first_three_lines_that_do_not_parse_are_shown() -> None:
    """Each comes with its number and its reason, safe to print; all are counted, and the rest is replayed."""
    bad = [
        b"\x1b[31mred\x00\xff\n",
        b"\n",
        line(0).replace(b"25/Oct", b"31/Feb"),
        b"fourth\n",
    ]
    found = replay(stream([line(0), *bad, line(1)]), "1 per 60s")
    assert (found.lines, found.unparsed, found.requests, found.denied) == (6, 4, 2, 1)
    assert found.first_unparsed == (
        UnparsedLine(2, r"neither common nor combined log format: '\x1b[31mred\x00\xff'"),
        UnparsedLine(3, "empty"),
        UnparsedLine(4, "no clock shows the time '31/Feb/2015:00:00:00 +0000', or it is not between 1970 and 2261"),
    )
    assert len(replay(stream([b"x" * 1_000_000]), "1/s").first_unparsed[0].problem) < 200


def test_a_line_of_a_megabyte_is_replayed() -> None:
    """A very long request is a request."""
    found = replay(stream([line(0, request=f"GET /{'a' * 1_000_000} HTTP/1.1"), line(1)]), "1 per 60s", by="path")
    assert (found.requests, found.keys, found.denied) == (2, 2, 0)


@pytest.mark.parametrize("by", FIELDS)
def test_every_field_can_be_the_key(by: str) -> None:
    """Two requests that differ in the field alone are two keys, two that do not are one, and missing values are one key."""
    values = {
        "address": (line(0, "192.0.2.1"), line(0, "2001:db8::1")),
        "user": (line(0, user="ann lee"), line(0)),
        "agent": (line(0, agent=r"a \"quoted\" one"), line(0).replace(b' "-" "curl/8"', b"")),
        "method": (line(0, request="HEAD / HTTP/1.1"), line(0, request="-")),
        "path": (line(0, request="GET /a?x=1 HTTP/1.1"), line(0, request=r"\x16\x03")),
        "status": (line(0, status=404), line(0)),
        "referer": (line(0, referer="https://example.org/"), line(0).replace(b' "-" "curl/8"', b"")),
    }[by]
    shown = {
        "address": ("192.0.2.1", "2001:db8::1"),
        "user": ("ann lee", "-"),
        "agent": (r"a \"quoted\" one", "-"),
        "method": ("HEAD", "-"),
        "path": ("/a", "-"),
        "status": ("404", "200"),
        "referer": ("https://example.org/", "-"),
    }[by]
    found = replay(stream(values * 2), "1 per 60s", by=by)
    assert (found.keys, found.keys_denied) == (2, 2)
    assert tuple(key.key[0] for key in found.most_denied) == shown


def test_several_fields_are_one_key_together() -> None:
    """A key is the tuple of its values, so that no two tuples run together; no field at all is one key for everyone."""
    log = [line(0, "192.0.2.1", agent="1 x"), line(0, "192.0.2.11", agent=" x"), line(0, "192.0.2.1", agent="y")]
    limit = Limit("test", "1 per 60s", by=("agent", "address"))
    found = replay_log(stream(log * 2), limit)
    assert (found.keys, found.denied) == (3, 3)
    assert found.most_denied[0].key == ("1 x", "192.0.2.1")
    everyone = replay_log(stream(log), Limit("test", "1 per 60s"))
    assert (everyone.keys, everyone.denied, everyone.most_denied[0].key) == (1, 2, ())


def test_a_user_named_like_an_address_is_not_that_address() -> None:
    """The first of several fields is keyed together with which field it is."""
    log = [line(0, "192.0.2.1"), line(0, "192.0.2.9", user="192.0.2.1")]
    assert replay(stream(log), "1 per 60s", by="user_or_address").keys == 2


def test_keys_are_safe_to_print() -> None:
    """Control characters and bytes that are no text are shown as escapes."""
    found = replay(stream([line(0).replace(b"curl/8", b"\x1b[2J\xff\xc3\xbc")] * 2), "1 per 60s", by="agent")
    assert found.most_denied[0].key == (r"\x1b[2J\xffü",)


def test_the_keys_most_denied_come_first() -> None:
    """As many as asked for are listed, the most often refused first."""
    log = [line(0, f"192.0.2.{n}") for n in range(1, 9) for _ in range(n + 1)]
    assert [key.denied for key in replay(stream(log), "1 per 60s").most_denied] == [8, 7, 6, 5, 4]
    assert [key.denied for key in replay(stream(log), "1 per 60s", top=2).most_denied] == [8, 7]
    assert replay(stream(log), "1 per 60s", top=0).most_denied == ()


def test_an_empty_log_is_a_log() -> None:
    """No line, no request, nothing denied."""
    found = replay(stream([]), "1/s")
    assert (found.lines, found.requests, found.keys, found.unparsed) == (0, 0, 0, 0)


def test_the_last_line_needs_no_end() -> None:
    """A log that was cut after its last quote, or that has Windows line ends, loses no line."""
    log = b"".join([line(0), line(0)])
    assert replay(io.BytesIO(log[:-1]), "1/s").requests == 2
    assert replay(io.BytesIO(log.replace(b"\n", b"\r\n")), "1/s").requests == 2


@pytest.mark.parametrize(("quota", "algorithm"), [("3 at once", None), ("3 per 60s", "concurrency")])
def test_requests_at_once_cannot_be_replayed(quota: str, algorithm: str | None) -> None:
    """A log does not say when a request ended, so a limit on concurrency is an error and not a guess."""
    with pytest.raises(ValueError, match="does not say when a request ended"):
        replay(stream([line(0)]), quota, algorithm)


@pytest.mark.parametrize("name", ["ip", "", "user_or_", "user_or_ip", "address,user"])
def test_an_unknown_field_is_named_with_those_that_exist(name: str) -> None:
    """The error says which name is wrong and which are accepted."""
    with pytest.raises(ValueError, match="expected any of address, user, agent, method, path, status, referer"):
        check_fields((name,))


def test_progress_tells_the_lines_so_far() -> None:
    """While a log is read its lines so far are told, rising to all of them."""
    told: list[int] = []
    replay(stream(line(at // 10) for at in range(20_000)), "1/s", progress=told.append)
    assert told == sorted(told)
    assert len(told) > 3
    assert told[-1] == 20_000


def peak(log: io.BytesIO, quota: str, algorithm: str) -> int:
    """The most bytes that a replay holds at once."""
    tracemalloc.start()
    try:
        replay(log, quota, algorithm)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-log"])
def test_memory_grows_with_the_keys_and_not_with_the_lines(algorithm: str) -> None:
    """Three times the lines of as many keys take no more memory."""

    def log(lines: int) -> io.BytesIO:
        return stream(line(at // 40, f"192.0.2.{at % 200}") for at in range(lines))

    assert peak(log(30_000), "5 per 60s", algorithm) < peak(log(10_000), "5 per 60s", algorithm) * 1.2


def test_what_recovered_keys_did_is_forgotten() -> None:
    """A sliding log of a thousand arrivals a key is let go when the key has recovered, while the replay goes on."""

    def log(keys: int) -> io.BytesIO:
        return stream(line(86_400 * key + at, f"192.0.2.{key}") for key in range(keys) for at in range(1000))

    assert peak(log(40), "1000 per hour", "sliding-log") < peak(log(10), "1000 per hour", "sliding-log") * 1.2
