"""Strings of limits and Flask-Limiter's settings: converted, they decide as the library does."""

from __future__ import annotations

import json
import random
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import parse_many, strategies
from limits.storage import MemoryStorage

from analysis.convert.policies import converted, limiter, limits, notes
from headway.core.quota import Quota
from headway.errors import ConfigError
from headway.testing.clock import ManualClock

UNITS = ("second", "minute", "hour", "day", "month", "year")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["7/{unit}", "7 per {unit}", "7 per 3 {unit}s", "7/2{unit}", " 7 / 2 {unit}S "])
def test_every_form_and_unit_means_the_same(form: str, unit: str) -> None:
    """Count and length are those of the library, a month's 30 days and a year's 360 included."""
    text = form.format(unit=unit)
    (item,) = parse_many(text)
    (limit,) = limits(converted(text, "limits"))
    quota = Quota.parse(limit["quota"])
    assert (quota.count, quota.period_ns) == (item.amount, item.get_expiry() * 10**9)


@pytest.mark.parametrize(
    ("strategy", "kind"),
    [("fixed-window", strategies.FixedWindowRateLimiter), ("moving-window", strategies.MovingWindowRateLimiter)],
)
@pytest.mark.parametrize("seed", range(12))
def test_a_converted_limit_decides_as_the_library(
    strategy: str, kind: type[strategies.RateLimiter], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random limits, arrivals and costs on one clock: every decision is the same."""
    chance = random.Random(seed)
    clock = ManualClock()
    monkeypatch.setattr("time.time", lambda: clock.now / 1e9)
    words = f"{chance.choice((2, 3, 7))} per {chance.choice((1, 2, 5))} {chance.choice(('second', 'minute'))}"
    settings = f'RATELIMIT_APPLICATION = "{words}"\nRATELIMIT_STRATEGY = "{strategy}"\n'
    ours = limiter(settings, clock)
    (item,) = parse_many(words)
    theirs = kind(MemoryStorage())
    for _ in range(300):
        clock.advance(chance.choice((0, 0.125, 0.375, 1.0625, 7.3125, 61.09375)) + chance.random() / 1000)
        key, cost = chance.choice("ab"), chance.choice((1, 1, 1, 2))
        assert ours.hit(address=key, cost=cost).allowed == theirs.hit(item, key, cost=cost), words


def test_the_sliding_counter_admits_no_more() -> None:
    """The library rounds what it weighs down, and so may admit one more; that is said."""
    found = converted('RATELIMIT_APPLICATION = "5 per minute"\nRATELIMIT_STRATEGY = "sliding-window-counter"\n')
    assert limits(found)[0]["algorithm"] == "sliding-window"
    assert "rounds" in notes(found)


CONFIGURATION = """
import os
RATELIMIT_DEFAULT = ["200 per day", "50 per hour"]
RATELIMIT_APPLICATION = "1000/hour"
RATELIMIT_STORAGE_URI = "async+redis+cluster://localhost:7000"
RATELIMIT_STRATEGY = "moving-window"
RATELIMIT_SWALLOW_ERRORS = True
RATELIMIT_HEADERS_ENABLED = True
RATELIMIT_KEY_FUNC = os.getlogin
"""


def test_settings_in_every_form() -> None:
    """Python, JSON, a shell's lines, and app.config[...] give the same policies; nothing of them runs."""
    python = converted(CONFIGURATION)
    policies = tomllib.loads(python.text)["policies"]
    assert list(policies) == ["default", "application"]
    assert [limit["by"] for limit in policies["default"]["limits"]] == [["address", "route"]] * 2
    assert policies["application"]["limits"][0]["by"] == ["address"]
    assert tomllib.loads(python.text)["store"] == "redis+cluster://localhost:7000"
    assert policies["default"]["limits"][0]["on_store_failure"] == "allow"
    assert "RATELIMIT_KEY_FUNC is not carried over" in notes(python)
    same = {
        "RATELIMIT_DEFAULT": "200 per day;50 per hour",
        "RATELIMIT_APPLICATION": "1000/hour",
        "RATELIMIT_STORAGE_URI": "async+redis+cluster://localhost:7000",
        "RATELIMIT_STRATEGY": "moving-window",
        "RATELIMIT_SWALLOW_ERRORS": True,
    }
    for text in (
        json.dumps(same, indent=1),
        "\n".join(f"export {name}='{value}'" for name, value in same.items()),
        "\n".join(f'app.config["{name}"] = {value!r}' for name, value in same.items()),
        f"app.config.update({', '.join(f'{name}={value!r}' for name, value in same.items())})",
    ):
        assert tomllib.loads(converted(text).text)["policies"] == policies


def test_settings_are_never_run(tmp_path: object) -> None:
    """Code in a configuration is text: what it would do does not happen, and what hangs on it is noted or refused."""
    with pytest.raises(ConfigError, match="code") as caught:
        converted('RATELIMIT_DEFAULT = __import__("os").abort()\n')
    assert caught.value.line == 1
    assert "no store" in notes(converted('RATELIMIT_DEFAULT = "1/day"\nRATELIMIT_STORAGE_URI = f"{x}"\n'))


PROGRAM = """
from flask_limiter import Limiter
limiter = Limiter(key_of, app=app, default_limits=["200 per day", "50 per hour"], strategy="moving-window", storage_uri="memory://")
database = limiter.shared_limit("100/hour", scope="database")

@app.route("/slow")
@limiter.limit("1 per day")
@limiter.limit("5/day", override_defaults=False)
def slow(): ...

@limiter.limit(lambda: "3/day")
async def computed(): ...

class View:
    @limiter.shared_limit("100/hour", scope="database")
    def get(self): ...
"""


def test_a_program_is_read_for_its_limiter_and_decorators() -> None:
    """Arguments of Limiter are settings; a decorated function is a policy, a shared scope one for all; code is noted."""
    found = converted(PROGRAM)
    policies = tomllib.loads(found.text)["policies"]
    quotas = {name: [limit["quota"] for limit in policy["limits"]] for name, policy in policies.items()}
    assert quotas == {"default": ["200/day", "50/hour"], "database": ["100/hour"], "slow": ["1/day", "5/day"]}
    assert {limit["algorithm"] for policy in policies.values() for limit in policy["limits"]} == {"sliding-log"}
    said = {(note.line, note.what.split()[0]) for note in found.notes}
    assert {(3, "RATELIMIT_KEY_FUNC"), (8, "override_defaults"), (11, "the")} <= said


def test_what_is_not_exact_is_said() -> None:
    """Several limits, meta limits, an unknown store, a fallback, being switched off, and 0."""
    found = converted(
        'RATELIMIT_DEFAULT = "0/day; 5/hour"\nRATELIMIT_META = "3/day"\nRATELIMIT_STORAGE_URI = "memcached://h"\n'
        'RATELIMIT_IN_MEMORY_FALLBACK = ["1/day"]\nRATELIMIT_ENABLED = False\nRATELIMIT_DEFAULTS_COST = 2\n'
    )
    said = notes(found)
    for words in (
        "charges those",
        "meta limits",
        "memcached",
        "FALLBACK",
        "RATELIMIT_ENABLED",
        "DEFAULTS_COST",
        "403 here",
    ):
        assert words in said
    assert limits(found, "default")[0]["block"] is True
    assert limits(found, "default")[1]["on_store_failure"] == "local"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("10 per minute\n5 per fortnight\n", 2, "fortnight"),
        ("ten per minute\n", 1, "ten"),
        ("10 per minute,\n", 1, "no limit"),
        ("-3/minute\n", 1, "-3"),
        ("10 per minutess\n", 1, "minutess"),
        ("9999999999999/day\n", 1, "9999999999999"),
        ("1/9999999999 days\n", 1, "100 years"),
        ("# nothing\n", None, "no limit"),
        ('\nRATELIMIT_DEFAULT = "x"\n', 2, "'x'"),
        ('RATELIMIT_DEFAULT = "1/day"\nRATELIMIT_STRATEGY = "best"\n', 2, "best"),
        ('RATELIMIT_STRATEGY = "fixed-window"\n', None, "no limit"),
        ('{"RATELIMIT_DEFAULT": "1/day"', 1, "JSON"),
    ],
)
def test_a_mistake_is_one_error_with_its_line(text: str, line: int | None, words: str) -> None:
    """What the library would not read is one clear error with file and line."""
    with pytest.raises(ConfigError, match=words) as caught:
        converted(text, "limits")
    assert (caught.value.file, caught.value.line) == ("given", line)


@given(
    st.one_of(
        st.text(max_size=60),
        st.from_regex(r"[0-9]{1,4} ?(/|per) ?[0-9]{0,3} ?[a-z]{1,8}([;,|][0-9 a-z/]{0,12})?", fullmatch=True),
    )
)
def test_what_the_library_reads_is_read(text: str) -> None:
    """Whatever the library takes is converted, unless headway cannot have it; nothing else is raised."""
    try:
        parse_many(text.strip())
        legal = "\n" not in text.strip() and not text.strip().startswith("#") and len(text.strip().splitlines()) == 1
    except ValueError:
        legal = False
    try:
        converted(text, "limits")
        made = True
    except ConfigError:
        made = False
    assert made or not legal or len(text) > 30
