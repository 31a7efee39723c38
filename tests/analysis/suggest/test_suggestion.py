"""Suggestions, held to what is known of the traffic."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest

from headway import Limiter
from headway.analysis.logs.block import Block
from headway.analysis.logs.read import read_logs
from headway.analysis.suggest.as_json import as_json
from headway.analysis.suggest.duckdb_numpy_requests import NEEDED
from headway.analysis.suggest.figures import report_of
from headway.analysis.suggest.goals import HonestGoal, StopTopGoal, TotalGoal, read_goal
from headway.analysis.suggest.kinds import Kind
from headway.analysis.suggest.percentiles import PERCENTILES, WINDOWS
from headway.analysis.suggest.policy import policy_toml
from headway.analysis.suggest.suggestion import Suggestion, check_by, suggest
from headway.analysis.suggest.trial import try_limits
from headway.core.limit import Limit
from headway.core.quota import SECOND, Quota
from headway.policy.toml import read_policy_text

from .made_traffic import GOOGLE, START, Made, browser, nearest_rank


def whom(found: Suggestion, place: int = 0) -> dict[str, int]:
    """How many requests of each client a proposal refuses."""
    return {found.named[one.client].client: one.refused for one in found.proposals[place].trial.clients}


@pytest.fixture(name="crowd")
def _crowd() -> Made:
    made = Made()
    made.people(400, random.Random(1))
    return made


def test_percentiles_are_nearest_rank_over_aligned_windows(crowd: Made, tmp_path: Path) -> None:
    """Every percentile of every window, by address and for everyone, is what its definition says."""
    found = crowd.suggested(tmp_path, goals=())
    assert [distribution.key for distribution in found.distributions] == ["client", "everyone"]
    for distribution, which in zip(found.distributions, (1, None), strict=True):
        for name, window in WINDOWS:
            counts = crowd.counted(window, which)
            summary = distribution.windows[name].summary()
            assert summary["windows"] == len(counts)
            assert summary["max"] == counts[-1]
            for percentile, share in PERCENTILES:
                assert summary[percentile] == nearest_rank(counts, share), (name, percentile)


def test_keys_are_counted_apart(tmp_path: Path) -> None:
    """IPv6 addresses are clients by their /64; users and API keys are counted for themselves where requests have them."""
    made = Made()
    for n in range(120):
        made.add(
            n, f"2001:db8:0:1::{n:x}", user=f"u{n % 3}" if n % 4 == 0 else None, api_key="k" if n % 6 == 0 else None
        )
        made.add(n, f"2001:db8:0:2::{n:x}")
    found = made.suggested(tmp_path, goals=())
    assert found.by == "network"
    assert {one.key: (one.requests, one.keys) for one in found.distributions} == {
        "client": (240, 2),
        "address": (240, 240),
        "user": (30, 3),
        "api_key": (20, 1),
        "everyone": (240, 1),
    }
    assert found.distributions[0].windows["60s"].most == 60
    assert found.distributions[1].windows["60s"].most == 1


def test_routes_are_counted_for_each_client(crowd: Made, tmp_path: Path) -> None:
    """Ids are folded, and a route's windows are those of its clients."""
    for n in range(30):
        crowd.add(n / 10, "192.0.2.1", method="POST", path="/login")
    found = crowd.suggested(tmp_path, goals=())
    routes = {route.key: route for route in found.routes}
    assert set(routes) == {"GET /items/{id}", "POST /login"}
    assert (routes["POST /login"].requests, routes["POST /login"].keys) == (30, 1)
    assert [routes["POST /login"].windows[name].most for name, _ in WINDOWS] == [10, 30, 30, 30]
    assert routes["GET /items/{id}"].requests == len(crowd.rows) - 30


def test_no_honest_client_is_refused_and_a_bot_is(crowd: Made, tmp_path: Path) -> None:
    """People are never refused by the proposal, not even by the smallest one; a program beside them mostly is."""
    for n in range(3000):
        crowd.add(n, "192.0.2.66", path=f"/items/{n}")
    found = crowd.suggested(tmp_path, goals=(HonestGoal(),))
    (proposal,) = found.proposals
    assert proposal.each is not None
    refused = crowd.refused(proposal.each.count, proposal.each.period_ns, proposal.each.burst)
    assert whom(found) == dict(refused)
    assert set(refused) == {"192.0.2.66"}
    assert refused["192.0.2.66"] > 2000
    assert proposal.tight is not None
    assert set(crowd.refused(proposal.tight.count, proposal.tight.period_ns, proposal.tight.burst)) == {"192.0.2.66"}
    assert proposal.each.burst > proposal.tight.burst
    strict = crowd.refused(proposal.tight.count, proposal.tight.period_ns, proposal.tight.burst)
    assert refused["192.0.2.66"] >= 0.9 * strict["192.0.2.66"]
    less = proposal.tight.burst - 1
    assert len(crowd.refused(proposal.tight.count, proposal.tight.period_ns, less)) > 1


def test_room_is_not_added_where_it_lets_others_through(crowd: Made, tmp_path: Path) -> None:
    """A program hardly faster than people is still refused nearly as much as by the smallest limit."""
    for n in range(3000):
        crowd.add(n * 8, "192.0.2.66", path=f"/{'abcdefgh'[n % 8]}")
    found = crowd.suggested(tmp_path, goals=(HonestGoal(),))
    (proposal,) = found.proposals
    assert proposal.each is not None
    tight = proposal.tight or proposal.each
    refused = crowd.refused(proposal.each.count, proposal.each.period_ns, proposal.each.burst)
    strict = crowd.refused(tight.count, tight.period_ns, tight.burst)
    assert set(refused) == set(strict) == {"192.0.2.66"}
    assert refused["192.0.2.66"] >= 0.9 * strict["192.0.2.66"] > 1000


def test_an_office_is_spared(crowd: Made, tmp_path: Path) -> None:
    """Thirty people behind one address are honest, so the proposal does not refuse them."""
    chance = random.Random(5)
    for n in range(600):
        crowd.add(36_000 + chance.random() * 600, "192.0.2.50", agent=browser(n % 30))
    found = crowd.suggested(tmp_path, goals=(HonestGoal(),))
    assert found.proposals[0].trial.refused == 0
    assert {kind.kind: kind.clients for kind in found.kinds}[Kind.SHARED] == 1


def test_the_top_is_stopped_and_nobody_else(crowd: Made, tmp_path: Path) -> None:
    """The greedy one client in a thousand is refused, exactly as exact arithmetic says, and none of the others."""
    chance = random.Random(6)
    crowd.people(1000, chance)
    for greedy in range(2):
        for _ in range(3000):
            crowd.add(chance.random() * 40_000, f"192.0.2.{greedy + 1}", agent=browser(greedy))
    found = crowd.suggested(tmp_path, goals=(StopTopGoal(Fraction(1, 1000)),))
    (proposal,) = found.proposals
    assert proposal.each is not None
    assert whom(found) == dict(crowd.refused(proposal.each.count, proposal.each.period_ns, proposal.each.burst))
    assert set(whom(found)) == {"192.0.2.1", "192.0.2.2"}
    assert found.clients == 1002


def test_who_is_never_fast_but_never_stops_is_stopped(tmp_path: Path) -> None:
    """A client that asks for hours at the pace at which the others ask for minutes is refused, and they are not."""
    made = Made()
    for person in range(300):
        for n in range(30):
            made.add(person * 120 + n * 20, f"10.0.{person // 250}.{person % 250}")
    for n in range(1900):
        made.add(n * 20.3, "192.0.2.1")
    found = made.suggested(tmp_path, goals=(StopTopGoal(Fraction(1, 1000)),))
    assert set(whom(found)) == {"192.0.2.1"}
    assert whom(found)["192.0.2.1"] > 1000


def test_the_total_holds_in_every_second(crowd: Made, tmp_path: Path) -> None:
    """What passes the proposal is never more than the total in any second, and the refusals are those that were counted."""
    chance = random.Random(7)
    for n in range(4000):
        crowd.add(50_000 + chance.random() * 60, "192.0.2.1" if n % 2 else f"10.9.0.{n % 200}")
    found = crowd.suggested(tmp_path, goals=(TotalGoal(Quota.parse("40/s")),))
    (proposal,) = found.proposals
    assert str(proposal.total) == "40/s"
    assert proposal.trial.refused == sum(whom(found).values()) > 0
    assert proposal.each is not None
    assert whom(found)["192.0.2.1"] > 0.5 * proposal.trial.refused
    assert proposal.trial.longest <= SECOND
    admitted = len(crowd.rows) - proposal.trial.refused
    assert admitted <= 41 * 61 + sum(1 for row in crowd.rows if not 50_000 <= (row[0] - START) / SECOND < 50_060)


def test_a_total_alone_where_a_limit_for_each_would_refuse_more(crowd: Made, tmp_path: Path) -> None:
    """Where the total is passed by many at once and rarely, it is proposed alone, and the other way is said with its price."""
    for n in range(200):
        crowd.add(1000 + n // 2 * 300, f"10.8.0.{n % 100}")
        crowd.add(1000 + n // 2 * 300, f"10.8.0.{n % 100}")
    for n in range(6):
        crowd.add(70_000, f"10.7.0.{n % 3}")
    found = crowd.suggested(tmp_path, goals=(TotalGoal(Quota.parse("5/s")),))
    (proposal,) = found.proposals
    assert proposal.each is None
    assert proposal.trial.refused == 1
    assert "beside it would keep the total from being used up by a few, but would have refused" in proposal.notes[0]


def test_each_limit_of_a_trial_has_its_own_refusals() -> None:
    """A request that both limits refuse counts for both, one that one of them refuses for that one."""
    each, total = Limit("each", "1 per 10s", by="address"), Limit("total", "3 per 10s", algorithm="sliding-log")
    arrivals = [(START + second * SECOND // 10, client) for second, client in enumerate((1, 1, 2, 3, 3, 4))]
    trial = try_limits(each, total, arrivals)
    assert trial.by_limit == (2, 2)
    assert {one.client: one.refused for one in trial.clients} == {1: 1, 3: 1, 4: 1}
    assert trial.longest == 10 * SECOND - 3 * SECOND // 10 + SECOND // 5


def test_a_total_that_is_never_reached_refuses_nobody(crowd: Made, tmp_path: Path) -> None:
    """A total far above the traffic is proposed alone and said to be never reached; without a number it is the usual one."""
    found = crowd.suggested(tmp_path, goals=(TotalGoal(Quota.parse("500/s")), TotalGoal()))
    first, second = found.proposals
    assert (first.each, first.trial.refused) == (None, 0)
    assert "never reached" in first.notes[0]
    seconds = crowd.counted(SECOND, None)
    assert second.total == Quota(nearest_rank(seconds, Fraction(99, 100)), SECOND)


def test_only_matching_requests_are_limited(crowd: Made, tmp_path: Path) -> None:
    """Other requests are not counted, but say who their clients are."""
    for n in range(40):
        crowd.add(n * 100, "192.0.2.1", method="POST", path="/login", status=401)
        crowd.add(n * 100 + 1, "192.0.2.1", path=("/.env", "/.git/config", "/wp-login.php")[n % 3], status=404)
    found = crowd.suggested(tmp_path, goals=(), match="POST /login")
    assert (found.requests, found.clients) == (40, 1)
    assert {named.client: named.kind for kind in found.kinds for named in kind.examples if named.evidence} == {
        "192.0.2.1": Kind.PROBE
    }


def test_the_smallest_limits_are_exact(crowd: Made, tmp_path: Path) -> None:
    """For each window the smallest GCRA limit refuses nobody, and one less refuses somebody; windows and logs alike."""
    found = crowd.suggested(tmp_path, goals=())
    for name, window in WINDOWS:
        smallest = found.smallest[name]
        assert not crowd.refused(smallest["gcra"], window, smallest["gcra"])
        assert smallest["gcra"] == 1 or crowd.refused(smallest["gcra"] - 1, window, smallest["gcra"] - 1)
        assert smallest["fixed-window"] == crowd.counted(window)[-1]
        times: dict[str, list[int]] = {}
        for row in crowd.rows:
            times.setdefault(row[1], []).append(row[0])
        assert smallest["sliding-log"] == max(
            sum(at - window < other <= at for other in of) for of in times.values() for at in of
        )


def test_small_samples_say_so(tmp_path: Path) -> None:
    """Twelve minutes of three clients are warned of, and so are refusals that were already there."""
    made = Made()
    for n in range(12 * 60 + 1):
        made.add(n, f"10.0.0.{n % 3}", status=429 if n == 5 else 200)
    found = made.suggested(tmp_path, goals=())
    said = "\n".join(found.warnings)
    assert "only 12 min of traffic" in said
    assert "only 3 clients" in said
    assert "1 request was answered with 429" in said
    assert "times are whole seconds" in said


def test_a_proxys_address_is_suspected(crowd: Made, tmp_path: Path) -> None:
    """An address with most of all requests and many agents is probably the proxy's."""
    for n in range(20_000):
        crowd.add(n * 4.1, "172.17.0.1", agent=browser(n % 60))
    assert any("perhaps a proxy's address" in warning for warning in crowd.suggested(tmp_path, goals=()).warnings)


def test_shared_addresses_are_told_whatever_a_client_is(tmp_path: Path) -> None:
    """An office is a shared address where clients are addresses, and is listed where they are its users."""
    made = Made()
    for n in range(300):
        made.add(n * 7, "192.0.2.50", user=f"u{n % 30}")
        made.add(n * 7, f"10.0.0.{n % 60}", user="ann" if n % 2 else None)
    by_address = made.suggested(tmp_path / "a", by=("address",), goals=())
    assert [kind.kind for kind in by_address.kinds] == [Kind.CLIENT, Kind.SHARED]
    assert any("see --by user_or_address" in warning for warning in by_address.warnings)
    by_user = made.suggested(tmp_path / "b", goals=())
    assert by_user.by == "user_or_address"
    assert [tuple(shared) for shared in by_user.shared_addresses] == [("192.0.2.50", 300, 30, 0)]
    assert "192.0.2.50" in str(report_of(by_user))


def test_requests_without_a_key_are_said(crowd: Made, tmp_path: Path) -> None:
    """Requests that have nothing to tell clients by are one client, and a warning says how many they are."""
    for n in range(50):
        crowd.add(n, None)
    found = crowd.suggested(tmp_path, goals=())
    assert any(warning.startswith("50 requests have none of the keys") for warning in found.warnings)


def test_a_goal_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    """Where nobody is left who must not be refused, that goal is a warning and the others are worked out."""
    made = Made()
    for n in range(100):
        made.add(n, "192.0.2.1", agent=GOOGLE)
    found = made.suggested(tmp_path)
    assert [str(proposal.goal) for proposal in found.proposals] == ["total=1/s"]
    assert sum("nobody is left who must not be refused" in warning for warning in found.warnings) == 2


def test_a_full_disk_is_an_error_of_the_system(crowd: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the requests cannot be kept, the error is one line that names the folder."""
    import duckdb

    from headway.analysis.suggest import duckdb_numpy_requests

    def full(*_: object) -> None:
        raise duckdb.IOException("No space left on device")

    monkeypatch.setattr(duckdb_numpy_requests.Requests, "_fold_routes", lambda self: self._asked(self, "x"))
    monkeypatch.setattr(duckdb_numpy_requests.Requests, "execute", full, raising=False)
    with pytest.raises(OSError, match=r"the requests cannot be kept in .*No space left on device"):
        crowd.suggested(tmp_path)


def test_hostile_values_are_only_values(tmp_path: Path) -> None:
    """Zero bytes, quotes, SQL, kilobytes and right-to-left tricks in every field change nothing and are shown escaped."""
    chance = random.Random(9)
    texts = ["\x00", "'; DROP TABLE hits; --", 'a"b', "\u202egnp", "x" * 9000, "\x1b[2J", "é", "{id}", "%s"]
    made = Made()
    for n in range(900):
        one, two, three, four = (chance.choice(texts) for _ in range(4))
        made.add(
            n * 50, one, user=two, api_key=three, agent=four, method=chance.choice(texts), path=chance.choice(texts)
        )
    for by in (("address",), ("user", "network"), ("api_key",)):
        found = made.suggested(tmp_path / by[0], by=by, match="*")
        assert (found.requests, found.clients) == (900, len(texts))
        assert not set("\x00\x1b\u202e") & set(str(report_of(found)))
        assert read_policy_text(policy_toml(found), file="limits.toml", folder=tmp_path).problems == ()


@pytest.mark.parametrize("by", ["address", "network", "user", "api_key", "api_key_or_user_or_network"])
def test_the_policy_file_is_accepted(crowd: Made, tmp_path: Path, by: str) -> None:
    """Whatever a client is, what is written is a policy file without a problem, with a policy for each goal."""
    for n in range(300):
        crowd.add(n / 9, "192.0.2.1", user=f"u{n % 3}", api_key='k"\\x' if n % 2 else None, path="/a")
    found = crowd.suggested(tmp_path, by=check_by(by))
    for match in (None, "POST /login", '/a"*', "*"):
        reading = read_policy_text(policy_toml(found, match), file="limits.toml", folder=tmp_path)
        assert reading.problems == ()
        assert reading.file is not None
        assert set(reading.file.policies) == {"no-honest-client-refused", "total", "stop-top"}


def test_a_request_falls_under_the_limit_of_its_first_key(crowd: Made, tmp_path: Path) -> None:
    """In the policy a request with an API key is limited by that alone, one without by its user, else by its address."""
    for n in range(300):
        crowd.add(n / 9, "192.0.2.1", user=f"u{n % 3}" if n % 5 else None, api_key="k" if n % 2 else None)
    found = crowd.suggested(tmp_path, by=check_by("api_key_or_user_or_network"), goals=(HonestGoal(),))
    file = read_policy_text(policy_toml(found), file="limits.toml", folder=tmp_path).policies()
    limiter = Limiter(*file.policies["no-honest-client-refused"].limits, secret_key=b"x" * 32)
    for given, name in (
        ({"api_key": "k", "user": "u", "address": "a"}, "per-api-key"),
        ({"user": "u", "address": "a"}, "per-user"),
        ({"address": "a"}, "per-address"),
    ):
        assert limiter.hit(given).limit == name


def test_api_keys_are_masked(tmp_path: Path) -> None:
    """No report shows an API key, only its beginning and a fingerprint, by which two are told apart."""
    made = Made()
    for n in range(600):
        made.add(n / 50, "192.0.2.1", api_key=f"sk_live_0123456789abcdef{n % 2}")
    found = made.suggested(tmp_path, goals=(TotalGoal(Quota.parse("10/s")),))
    said = f"{as_json(found)}{report_of(found)}{policy_toml(found)}"
    assert "0123456789abcdef" not in said
    assert len({named.client for named in found.named.values()}) == 2
    assert "api_key=sk_l…(" in said


def test_an_interrupt_leaves_what_was_read(crowd: Made, tmp_path: Path) -> None:
    """Ctrl-C while reading ends the reading; what came before is worked out, and the report says that it is partial."""

    def blocks() -> Iterable[Block]:
        for number, block in enumerate(crowd.blocks(100)):
            if number == 5:
                raise KeyboardInterrupt
            yield block

    found = suggest(blocks(), tmp_path)
    assert (found.lines, found.requests) == (500, 500)
    assert found.partial == "stopped by Ctrl-C after 500 lines"
    assert len(found.proposals) == 3
    assert as_json(found)["partial"] is True
    assert "Not the whole log" in policy_toml(found)


def test_an_interrupt_of_the_work_leaves_what_was_found(crowd: Made, tmp_path: Path) -> None:
    """Ctrl-C after reading ends the work there: what is known by then is reported, as partial."""

    def progress(stage: str, count: int) -> None:
        if stage.startswith("trying total"):
            raise KeyboardInterrupt

    found = crowd.suggested(tmp_path, progress=progress)
    assert found.requests == len(crowd.rows)
    assert [str(proposal.goal) for proposal in found.proposals] == ["no-honest-client-refused"]
    assert found.partial.endswith("what follows is missing")
    assert report_of(found).partial


def test_no_request_is_no_error(tmp_path: Path) -> None:
    """A log without a request has no suggestion."""
    found = Made().suggested(tmp_path)
    assert (found.lines, found.requests, found.proposals) == (0, 0, [])
    assert report_of(found).paragraphs == ("0 lines, no requests.",)
    assert as_json(found)["from"] is None


def test_the_given_logs_figures() -> None:
    """On the log of the field report FS-40, where it is at hand, every figure is the published one."""
    name = os.environ.get("HEADWAY_FS40_LOG")
    if not name:
        pytest.skip("HEADWAY_FS40_LOG does not name the log")
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = suggest(read_logs([name], NEEDED), Path(folder), goals=())
    assert (found.lines, found.unparsed, found.clients) == (3456, 0, 520)
    rows = {name: histogram.summary() for name, histogram in found.distributions[0].windows.items()}
    assert [[rows[name][key] for key in ("p50", "p95", "p99", "max")] for name in ("1s", "10s", "60s")] == [
        [1, 1, 2, 3],
        [2, 6, 6, 7],
        [4, 6, 6, 11],
    ]
    assert found.smallest["60s"] == {"gcra": 7, "fixed-window": 11, "sliding-log": 11}
    with tempfile.TemporaryDirectory() as folder:
        assert suggest(read_logs([name], NEEDED), Path(folder), goals=(), match="POST /join_form").requests == 576


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no-honest-client-refused", "no-honest-client-refused"),
        ("total=100/s", "total=100/s"),
        ("total=6000 per minute", "total=6000/minute"),
        ("total", "total"),
        ("stop-top=0.1%", "stop-top=0.1%"),
        ("stop-top=5 %", "stop-top=5%"),
        ("stop-top", "stop-top=0.1%"),
    ],
)
def test_goals_are_read(text: str, said: str) -> None:
    """A goal is printed as it is read."""
    assert str(read_goal(text)) == said


@pytest.mark.parametrize(
    "text", ["", "total=", "total=x", "total=0/s", "total=5/s burst 9", "stop-top=0%", "stop-top=100%", "stop-top=0.1", "no-honest-client-refused=1", "win"]
)  # fmt: skip
def test_other_goals_are_named(text: str) -> None:
    """What is no goal is an error that shows it and says what is."""
    with pytest.raises(ValueError, match=r"goal is .*expected|goal is .*quota"):
        read_goal(text)


def test_other_keys_are_named() -> None:
    """What no client can be is an error that names it."""
    with pytest.raises(ValueError, match=r"--by names 'path'; expected any of address, network, user, api_key"):
        check_by("user_or_path")
