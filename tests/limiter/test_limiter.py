"""``Limiter``: arguments, keys, costs, resets, and what a decision says; most of it on the memory and the SQLite store."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import SECOND, Quota
from headway.errors import (
    AttributeMissing,
    AttributeUnusable,
    ConfigError,
    HeadwayError,
    LimitError,
    UnknownName,
)
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.stores.immediate import ImmediateStore
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore
from headway.testing.clock import ManualClock
from ways import STORES

PHONE = Limit("per-phone", "2 per 60s", by="phone")
EVERYONE = Limit("everyone", "10 per 60s")
PAIR = Limit("pair", "3 per 60s", by=["phone", "ip"])

Make = Callable[..., Limiter]


@pytest.fixture(params=STORES)
def make(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[Make]:
    """``make(*limits, **options)``: a limiter on this test's store."""
    store = STORES[request.param](clock, tmp_path)
    yield lambda *limits, **options: Limiter(*limits, store=store, **options)
    store.close()


# Arguments


def test_attributes_come_by_keyword_as_a_mapping_or_both(make: Make) -> None:
    """Three spellings of one request charge one key; names that no limit uses are ignored."""
    limiter = make(PAIR)
    limiter.hit(phone="1", ip="a")
    limiter.hit(MappingProxyType({"phone": "1", "ip": "a", "agent": object()}))
    assert limiter.hit({"phone": "1"}, ip="a").remaining == 0
    assert not limiter.hit({"ip": "a"}, phone="1", unused=None).allowed


def test_an_attribute_given_twice_is_an_error(make: Make) -> None:
    """One value would have to win silently; the error names the attribute."""
    with pytest.raises(TypeError, match="attribute 'phone' is given both in the mapping and by keyword"):
        make(PHONE).hit({"phone": "1"}, phone="2")
    with pytest.raises(TypeError, match="attributes are a list; expected a mapping"):
        make(PHONE).hit(["phone"])  # type: ignore[arg-type]


def test_a_missing_attribute_is_named_with_its_limit_and_what_there_is(make: Make) -> None:
    """A request without the key is never counted under an empty one."""
    limiter = make(EVERYONE, PAIR)
    for call in (limiter.hit, limiter.peek):
        with pytest.raises(
            AttributeMissing, match=r"limit 'pair' is keyed by 'ip', .*\(it has: agent, phone\)"
        ) as caught:
            call(phone="1", agent="x")
    assert isinstance(caught.value, ValueError)
    assert caught.value.attribute == "ip"
    assert limiter.peek(phone="1", ip="a").outcomes["everyone"].remaining == 9, "nothing was charged"


@pytest.mark.parametrize("bad", [None, 1.5, True, float("nan"), ["1"], {"a": 1}, object()])
def test_a_value_that_cannot_be_a_key_is_a_type_error(bad: object, make: Make) -> None:
    """None most of all: it is what a broken lookup returns, and would put all strangers on one counter."""
    limiter = make(PHONE)
    with pytest.raises(AttributeUnusable, match=r"attribute 'phone' is an? "):
        limiter.hit(phone=bad)
    with pytest.raises(TypeError):
        limiter.peek({"phone": bad})


def test_one_entity_has_one_key_however_its_value_is_typed(make: Make) -> None:
    """42 and "42", a UUID and its text, an enum and its value share a counter; bytes and tuples are their own."""
    uuid = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    colour = StrEnum("colour", {"RED": "red"})
    limiter = make(PHONE)
    for one, same in [
        (42, "42"),
        (uuid, str(uuid)),
        (colour("red"), "red"),
        (b"42", bytearray(b"42")),
        ((4, "x"), ("4", "x")),
    ]:
        assert limiter.hit(phone=one).remaining == 1
        assert limiter.hit(phone=same).remaining == 0
        assert not limiter.hit(phone=one).allowed


@given(
    st.lists(
        st.tuples(*[st.one_of(st.text(max_size=6), st.binary(max_size=4), st.integers(), st.tuples(st.text(max_size=3)))] * 2),
        min_size=2, max_size=6,
    )
)  # fmt: skip
def test_no_two_different_attribute_tuples_share_a_counter(pairs: list[tuple[object, object]]) -> None:
    """Whatever the values, each distinct pair has its whole quota, in memory and in a file's key."""
    limiter = Limiter(Limit("pair", "1 per day", by=["a", "b"]))
    distinct = {tuple(str(part) if isinstance(part, int) else part for part in pair) for pair in pairs}
    assert sum(limiter.hit(a=a, b=b).allowed for a, b in pairs) == len(distinct)


def test_names_that_would_clash_with_parameters_cannot_be_attributes() -> None:
    """``by="cost"`` could never be given by keyword; the error says so when the limit is made."""
    for name in ("cost", "attributes", "deadline", "up_to", "self"):
        with pytest.raises(LimitError, match="parameter of hit"):
            Limit("l", "1/s", by=name)


# Costs


def test_a_cost_is_charged_to_every_limit_without_one_of_its_own(make: Make) -> None:
    """A fixed cost stays; the call's goes to the others; 0 is 0 for all."""
    limiter = make(EVERYONE, Limit("fixed", "10 per 60s", cost=3))
    outcomes = limiter.hit(cost=2).outcomes
    assert [outcome.remaining for outcome in outcomes.values()] == [8, 7]
    assert [outcome.remaining for outcome in limiter.hit(cost=0).outcomes.values()] == [8, 7]
    assert [outcome.remaining for outcome in limiter.hit().outcomes.values()] == [7, 4]


def test_costs_can_be_given_by_limit_name(make: Make) -> None:
    """Limits that are not named are asked for 1; an unknown name and a fixed one are errors."""
    limiter = make(EVERYONE, PHONE, Limit("fixed", "10 per 60s", cost=3))
    outcomes = limiter.hit(phone="1", cost={"everyone": 5}).outcomes
    assert [outcome.remaining for outcome in outcomes.values()] == [5, 1, 7]
    with pytest.raises(UnknownName, match="no limit is named 'evryone'; known: everyone, per-phone, fixed"):
        limiter.hit(phone="1", cost={"evryone": 5})
    with pytest.raises(LimitError, match="limit 'fixed' has a fixed cost of 3"):
        limiter.hit(phone="1", cost={"fixed": 1})
    assert limiter.peek(phone="1", cost=0).outcomes["everyone"].remaining == 5


@pytest.mark.parametrize("bad", [-1, -(10**30)])
def test_a_negative_cost_is_a_value_error(bad: int, make: Make) -> None:
    """It would hand units out; the error points to refunds."""
    limiter = make(EVERYONE)
    with pytest.raises(LimitError, match=f"cost is {bad}; expected a whole number from 0") as caught:
        limiter.hit(cost=bad)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("bad", [1.0, 1.5, float("nan"), float("inf"), True, False, "1", None, Fraction(1), [1]])
def test_a_cost_that_is_no_int_is_a_type_error(bad: object, make: Make) -> None:
    """Fractions, NaN, bools and text are never rounded or taken for a number."""
    for limits in ([EVERYONE], [PHONE], [EVERYONE, PHONE]):
        limiter = make(*limits)
        with pytest.raises(TypeError, match="expected a whole number from 0"):
            limiter.hit(phone="1", cost=bad)  # type: ignore[arg-type]
        assert limiter.hit(phone="1", cost=0).remaining == limits[-1].quota.burst


# Peek, hit, reset


def test_peek_answers_exactly_what_hit_would_and_writes_nothing(make: Make) -> None:
    """Admitted, refused and never: the same decision, any number of times."""
    limiter = make(PHONE, EVERYONE)
    for cost in (1, 3, 1, 2, 1, 0):
        looks = [limiter.peek(phone="1", cost=cost) for _ in range(3)]
        decision = limiter.hit(phone="1", cost=cost)
        assert {look.allowed for look in looks} == {decision.allowed}
        assert all(look.outcomes == decision.outcomes for look in looks)
        assert all(look.retry_after_ns == decision.retry_after_ns for look in looks)


def test_reset_forgets_the_keys_that_are_fully_given(make: Make) -> None:
    """By attributes: every limit whose ``by`` is non-empty and given; never a global one, which only its name resets."""
    limiter = make(PHONE, PAIR, EVERYONE)
    limiter.hit(phone="1", ip="a", cost=2)
    assert limiter.reset(phone="1") == ("per-phone",)
    left = {name: outcome.remaining for name, outcome in limiter.hit(phone="1", ip="a", cost=0).outcomes.items()}
    assert left == {"per-phone": 2, "pair": 1, "everyone": 8}
    assert limiter.reset({"phone": "1"}, ip="a") == ("per-phone", "pair")
    assert limiter.reset("everyone") == ("everyone",)
    assert limiter.reset("pair", phone="1", ip="a") == ("pair",)
    assert limiter.hit(phone="1", ip="a", cost=0).outcomes["everyone"].remaining == 10


def test_a_reset_that_touches_nothing_is_an_error(make: Make) -> None:
    """A misspelt attribute or name must not look like a reset."""
    limiter = make(PHONE, EVERYONE)
    with pytest.raises(LimitError, match=r"reset touches no limit: attributes given: phoen"):
        limiter.reset(phoen="1")
    with pytest.raises(LimitError, match=r"everyone by nothing \(reset it by its name\)"):
        limiter.reset()
    with pytest.raises(UnknownName, match="no limit is named 'all'"):
        limiter.reset("all")
    with pytest.raises(AttributeMissing):
        limiter.reset("per-phone")


# Decisions


def test_an_admitted_decision_names_the_tightest_limit(make: Make) -> None:
    """The fewest remaining binds; ties go by name; nothing is to be waited for."""
    decision = make(Limit("b", "5/min"), Limit("a", "5/min"), Limit("c", "9/min")).hit()
    assert decision.allowed
    assert bool(decision)
    assert decision.limit == "a"
    assert decision.remaining == 4
    assert decision.retry_after == 0.0
    assert decision.retry_after_ns == 0
    assert not decision.never
    assert decision.degraded is None
    assert list(decision.outcomes) == ["b", "a", "c"]


def test_a_refused_decision_names_the_limit_with_the_longest_wait(make: Make, clock: ManualClock) -> None:
    """Its wait is what the caller has to wait, in seconds, in ns and as an aware date."""
    limiter = make(Limit("short", "1 per 10s"), Limit("long", "1 per 60s"), Limit("loose", "9/min"))
    limiter.hit()
    clock.advance(Fraction(5, 2))
    decision = limiter.hit()
    assert not decision
    assert decision.limit == "long"
    assert decision.retry_after == 57.5
    assert decision.retry_after_ns == 57_500_000_000
    assert decision.retry_at == datetime(2027, 1, 15, 8, 1, tzinfo=UTC)
    assert decision.decided_at == datetime(2027, 1, 15, 8, 0, 2, 500_000, tzinfo=UTC)
    assert isinstance(decision.outcomes["short"], Refused)
    assert decision.outcomes["loose"] == Admitted(8, 4_166_666_667, 4_166_666_667)
    assert isinstance(decision.binding, Refused)


def test_never_outweighs_any_wait(make: Make) -> None:
    """If one limit can never admit the cost, waiting for the others is no advice."""
    limiter = make(Limit("small", "2/min"), Limit("large", "5/day"))
    limiter.hit(cost=2)
    decision = limiter.hit(cost=3)
    assert decision.never
    assert decision.limit == "small"
    assert decision.retry_after == math.inf
    assert decision.retry_after_ns is None
    assert decision.retry_at is None
    assert isinstance(decision.binding, Never)


@given(st.integers(1, 100 * 365 * 86_400 * SECOND))
def test_the_float_seconds_are_never_below_the_exact_wait(wait: int) -> None:
    """For any wait of up to a century, sleeping ``retry_after`` is enough, and it is the nearest float that is."""
    limiter = Limiter(Limit("l", Quota(1, wait)), store=MemoryStore(clock=ManualClock(0)))
    limiter.hit()
    decision = limiter.hit()
    assert Fraction(decision.retry_after) * SECOND >= wait == decision.retry_after_ns
    assert Fraction(math.nextafter(decision.retry_after, 0)) * SECOND < wait


def test_a_decision_can_be_kept_copied_and_pickled(make: Make, clock: ManualClock) -> None:
    """A decision is what was true then: later calls do not change it, and copies say the same."""
    limiter = make(PHONE, EVERYONE)
    first = limiter.hit(phone="1")
    for _ in range(5):
        last = limiter.hit(phone="1")
    clock.advance(30)
    limiter.reset(phone="1")
    assert first.outcomes["per-phone"].remaining == 1
    assert last.retry_after == 30
    for decision in (first, last):
        for twin in (pickle.loads(pickle.dumps(decision)), copy.copy(decision), copy.deepcopy(decision)):
            assert twin.to_dict() == decision.to_dict()
            assert twin.sentence() == decision.sentence()
    assert "per-phone" in repr(last)
    assert "refused" in repr(last)


def test_to_dict_is_json_without_infinities(make: Make) -> None:
    """Never is null and a flag, not Infinity."""
    never = make(PHONE).hit(phone="1", cost=5).to_dict()
    text = json.dumps(never, allow_nan=False)
    assert json.loads(text)["never"] is True
    assert json.loads(text)["retry_after"] is None


def test_a_limiter_without_limits_admits_everything(make: Make) -> None:
    """An empty policy limits nothing, and its decision has no binding limit."""
    decision = make().hit(phone="1")
    assert decision.allowed
    assert decision.limit is None
    assert decision.remaining is None
    assert decision.outcomes == {}
    assert not make().peek().never


# Making one


def test_limits_are_checked_when_the_limiter_is_made() -> None:
    """Two limits of one name, something that is no limit, a namespace that is no text."""
    with pytest.raises(LimitError, match="two limits are named 'per-phone'"):
        Limiter(PHONE, EVERYONE, PHONE)
    with pytest.raises(LimitError, match="'5/min' is no Limit"):
        Limiter("5/min")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="namespace is 5, an int"):
        Limiter(PHONE, namespace=5)  # type: ignore[arg-type]


def test_namespaces_and_names_keep_counters_apart_and_the_same_ones_share(make: Make) -> None:
    """Two limiters share a counter only with the same namespace, limit name and attributes; the quota is not part of it."""
    assert make(PHONE).hit(phone="1", cost=2).allowed
    assert not make(PHONE, EVERYONE).hit(phone="1").allowed
    assert not make(Limit("per-phone", "2 per 50s", by="phone")).hit(phone="1", cost=2).allowed
    assert make(PHONE, namespace="other").hit(phone="1").allowed
    assert make(Limit("per-number", "2 per 60s", by="phone")).hit(phone="1").allowed
    assert make(Limit("per-phone", "2 per 60s", by="number")).hit(number="1").allowed


def test_a_limiter_closes_the_store_it_opened_and_no_other(tmp_path: Path) -> None:
    """A URL's store is the limiter's to close, at the end of a with block; a store that was given stays open."""
    with Limiter(PHONE, store=f"sqlite:///{tmp_path}/a.db") as limiter:
        assert limiter.hit(phone="1").allowed
        store = limiter.store
    assert isinstance(store, SqliteStore)
    assert store._connection is None
    given_store = SqliteStore(tmp_path / "b.db")
    with Limiter(PHONE, store=given_store) as limiter:
        limiter.hit(phone="1")
    assert given_store._connection is not None
    given_store.close()


@pytest.mark.parametrize(
    "url",
    ["", "sqlite", "sqlite://", "sqlite:///", "sqlite:////", "sqlite://host/file.db", "sqlite:///folder/", "memory://x", "memory://?a=b",
     "nosuch://host", "memory", "sqlite:///a.db?mode=ro", "/just/a/path.db", "sqlite:///a.db#x"],
)  # fmt: skip
def test_a_url_that_names_no_store_is_refused_with_what_is_accepted(url: str) -> None:
    """The error shows the URL, without its options, and the forms that work."""
    with pytest.raises(ConfigError) as caught:
        Limiter(PHONE, store=url)
    assert repr(url.partition("?")[0].partition("#")[0]) in str(caught.value)
    assert isinstance(caught.value, HeadwayError)


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
@pytest.mark.parametrize("store", [Path("limits.db"), 5, None, b"memory://", MemoryStore])
def test_what_is_neither_a_url_nor_a_store_is_refused_at_once(
    kind: type[Limiter | AsyncLimiter], store: object
) -> None:
    """A file's path, above all, is no URL: the error comes from the constructor and shows what a URL looks like."""
    with pytest.raises(ConfigError, match=r"^(?=.*expected a store, or a URL such as 'sqlite:///limits\.db')"):
        kind(PHONE, store=store)  # type: ignore[arg-type]  # the mistake


def test_a_client_in_place_of_its_store_is_told_which_store_takes_it() -> None:
    """Of redis-py or of psycopg, also of a class derived from theirs; what a client says of itself is left out."""
    redis, pools = pytest.importorskip("redis"), pytest.importorskip("psycopg_pool")
    client, pool = type("Mine", (redis.Redis,), {})(password="hidden"), pools.ConnectionPool("", open=False)
    for kind, store, expected in [
        (Limiter, client, r"expected RedisStore\(…\) around it, from headway\.stores\.redis;"),
        (AsyncLimiter, client, r"expected AsyncRedisStore\(…\) around it, from headway\.stores\.redis;"),
        (Limiter, pool, r"expected PostgresStore\(…\) around it, from headway\.stores\.postgres\.sync;"),
        (AsyncLimiter, pool, r"expected AsyncPostgresStore\(…\) around it, from headway\.stores\.postgres\.aio;"),
    ]:
        with pytest.raises(ConfigError, match=expected) as caught:
            kind(PHONE, store=store)
        assert len(str(caught.value)) < 200
        assert "hidden" not in str(caught.value)


def test_a_limiter_that_does_not_await_refuses_a_store_that_must_be() -> None:
    """Its answers would be coroutines that nobody awaits."""
    with pytest.raises(ConfigError, match="use AsyncLimiter"):
        Limiter(PHONE, store=ImmediateStore(MemoryStore()))  # type: ignore[arg-type]  # the mistake


def test_sqlite_urls_are_relative_with_three_slashes_absolute_with_four_and_percent_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sqlite:///x.db is in the working directory, sqlite:////x.db is not, %20 is a space."""
    monkeypatch.chdir(tmp_path)
    for url, path in [
        ("sqlite:///relative.db", tmp_path / "relative.db"),
        (f"sqlite:///{tmp_path}/absolute.db", tmp_path / "absolute.db"),
        (f"sqlite:////{str(tmp_path).lstrip('/')}/a%20b%3F.db", tmp_path / "a b?.db"),
    ]:
        with Limiter(PHONE, store=url) as limiter:
            limiter.hit(phone="1")
        assert path.exists(), url


# Secrets


def test_secret_values_never_reach_the_file(tmp_path: Path) -> None:
    """Neither the value nor any part of it is in a byte of the database, its log or a decision; it still counts apart."""
    secret = Limit("per-account", "2 per 60s", by=["account", "ip"], secret="account")
    limiter = Limiter(secret, store=f"sqlite:///{tmp_path}/limits.db", secret_key="k" * 16)
    decisions = [limiter.hit(account="hunter2-sesame", ip="198.51.100.7") for _ in range(3)]
    assert [decision.allowed for decision in decisions] == [True, True, False]
    assert limiter.hit(account="other", ip="198.51.100.7").allowed
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"198.51.100.7" in written, "what is not secret is there, so the search works"
    for trace in (b"hunter2", b"sesame", b"k" * 16):
        assert trace not in written
    shown = repr(decisions) + decisions[-1].sentence() + str(decisions[-1].headers()) + str(decisions[-1].to_dict())
    assert "hunter2" not in shown
    limiter.close()


def test_hashes_depend_on_the_key_the_limit_and_the_attribute(tmp_path: Path) -> None:
    """One value hashes differently under another key, limit, attribute or namespace, so they cannot be joined."""
    store = SqliteStore(tmp_path / "limits.db")
    seen = set()
    for name, attribute, key, namespace in [
        ("a", "account", "k" * 16, "n"), ("b", "account", "k" * 16, "n"), ("a", "user", "k" * 16, "n"),
        ("a", "account", "j" * 16, "n"), ("a", "account", "k" * 16, "m"),
    ]:  # fmt: skip
        limiter = Limiter(
            Limit(name, "2/s", by=attribute, secret=True), store=store, secret_key=key, namespace=namespace
        )
        seen.add(limiter.plan.keys({attribute: "x"})[0])
    assert len(seen) == 5
    store.close()


def test_secrets_need_a_key_where_others_share_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file shared by processes needs one key for all, from an argument or the environment; memory makes its own."""
    secret = Limit("l", "2/s", by="account", secret=True)
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    with pytest.raises(LimitError, match="give the limiter a secret_key"):
        Limiter(secret, store=f"sqlite:///{tmp_path}/a.db")
    with pytest.raises(ConfigError, match="the secret key has 5 bytes; expected at least 16"):
        Limiter(secret, secret_key="short")
    assert Limiter(secret).hit(account="x").allowed
    monkeypatch.setenv("HEADWAY_SECRET_KEY", "e" * 20)
    first, second = (Limiter(secret, store=f"sqlite:///{tmp_path}/a.db") for _ in range(2))
    assert first.hit(account="x").remaining == 1
    assert second.hit(account="x").remaining == 0
    first.close()
    second.close()


def test_a_secret_that_cannot_be_a_key_is_not_shown_in_the_error() -> None:
    """The error names the attribute and its type, never the value."""
    with pytest.raises(AttributeUnusable) as caught:
        Limiter(Limit("l", "2/s", by="token", secret=True)).hit(token=["hunter2"])
    assert "hunter2" not in str(caught.value)


# When the store is away


class Away(MemoryStore):
    """A store whose calls fail."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.calls = 0

    def lane(self, *_: object) -> None:  # type: ignore[override]  # so that the limiter takes the long way
        return None

    def advance(self, *_: object, **__: object) -> object:  # type: ignore[override]
        self.calls += 1
        raise self.error


def test_an_error_that_is_no_store_error_is_not_swallowed() -> None:
    """A bug in a store is not an outage: it reaches the caller as it is."""
    with pytest.raises(ZeroDivisionError):
        Limiter(EVERYONE, store=Away(ZeroDivisionError())).hit()


def test_a_decision_knows_its_type() -> None:
    """``Decision`` is what hit and peek return."""
    assert type(Limiter(EVERYONE).hit()) is type(Limiter(EVERYONE).peek()) is Decision
    assert Limiter(EVERYONE).hit().decided_at - datetime.now(UTC) < timedelta(seconds=5)


@pytest.mark.parametrize("store", ["memory://", "sqlite:///limits.db"])
def test_a_pickled_limiter_works_on(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy counts in the same file, and in a memory of its own; also the asynchronous one, and deep copies."""
    monkeypatch.chdir(tmp_path)
    limiter = Limiter(Limit("a", "2/hour", by="k"), Limit("b", "9/hour"), store=store)
    assert limiter.hit(k="x").remaining == 1
    for copied in (pickle.loads(pickle.dumps(limiter)), copy.deepcopy(limiter)):
        assert copied.peek(k="x").remaining == (0 if "sqlite" in store else 1)
        copied.close()
    assert pickle.loads(pickle.dumps(AsyncLimiter(Limit("a", "2/hour"), store=store))).limits == (Limit("a", "2/hour"),)
    limiter.close()


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("wait", ("timeout", "up_to")),
        ("reserve", ("timeout", "deadline", "up_to")),
        ("peek", ("up_to",)),
        ("explain", ("up_to",)),
        ("admitted", ("timeout", "deadline", "up_to")),
    ],
)
def test_another_call_s_parameter_is_not_taken_for_an_attribute(kind: Any, call: str, names: tuple[str, ...]) -> None:
    """A wait that would have no end, a reservation of one unit instead of some: a TypeError says which call takes it."""

    def done(answer: Any) -> None:
        if hasattr(answer, "__enter__"):
            answer.__enter__()
        elif hasattr(answer, "__aenter__"):
            asyncio.run(answer.__aenter__())
        elif asyncio.iscoroutine(answer):
            asyncio.run(answer)

    limiter = kind(Limit("l", "5 per hour", by="id"))
    for name in names:
        with pytest.raises(TypeError, match=f"{name}=2 is no attribute of a request; (wait|hit) takes"):
            done(getattr(limiter, call)(id="k", **{name: 2}))
        with pytest.raises(TypeError, match="is given both"):
            done(getattr(limiter, call)({"id": "k"}, id="k"))
