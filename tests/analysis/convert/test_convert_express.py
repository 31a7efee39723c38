"""express-rate-limit's options, as JSON or in JavaScript: converted, they decide as the middleware does."""

from __future__ import annotations

import json
import random
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.convert.policies import converted, limiter, limits, notes
from headway.errors import ConfigError
from headway.testing.clock import ManualClock


class Store:
    """The middleware's memory store: a key's window begins with its first hit, every hit counts; none of our code."""

    def __init__(self, window_ms: int, limit: int) -> None:
        self.window = window_ms / 1000
        self.limit = limit
        self.clients: dict[str, tuple[float, int]] = {}

    def allows(self, key: str, now: float) -> bool:
        reset, hits = self.clients.get(key, (0.0, 0))
        if reset <= now:
            reset, hits = now + self.window, 0
        self.clients[key] = (reset, hits + 1)
        return hits + 1 <= self.limit


@pytest.mark.parametrize("seed", range(20))
def test_converted_options_decide_as_the_middleware(seed: int) -> None:
    """Random windows and limits, random arrivals: every decision is the same."""
    chance = random.Random(seed)
    window, limit = chance.choice((250, 1000, 60_000, 90_000)), chance.choice((1, 2, 5))
    clock = ManualClock()
    ours = limiter(json.dumps({"windowMs": window, "limit": limit}), clock)
    theirs = Store(window, limit)
    for _ in range(300):
        clock.advance(chance.choice((0, 0, 0.0625, 0.5, 30.25, 100.125)))
        key = chance.choice("ab")
        assert ours.hit(address=key).allowed == theirs.allows(key, clock.now / 1e9)


SCRIPT = """
import { rateLimit } from 'express-rate-limit'   // windowMs: 1
/* limit: 2 */
const api = rateLimit({
  windowMs: 15 * 60 * 1000, // 15 minutes
  limit: 100,
  standardHeaders: 'draft-8',
  legacyHeaders: false,
  ...shared,
  keyGenerator: (req, res) => { return req.get("a,b}") ?? `x,}${1}` },
  async skip(req) { return req.ip === '::1' },
  handler,
  "passOnStoreError": true,
});
export const login = rateLimit({ windowMs: 60_000, max: 5, statusCode: 403, skipSuccessfulRequests: true })
app.use(slowDown({ windowMs: 1000, delayAfter: 1 }))
"""


def test_a_script_is_read_and_never_run() -> None:
    """Each call of rateLimit is a policy of its own, named after its variable; what is code is noted, with its line."""
    found = converted(SCRIPT)
    policies = tomllib.loads(found.text)["policies"]
    assert list(policies) == ["api", "login"]
    assert policies["api"]["limits"][0] == {
        "name": "api", "quota": "100 per 15 min", "algorithm": "anchored-window", "by": ["key"], "count_refused": True,
        "on_store_failure": "allow",
    }  # fmt: skip
    assert policies["login"]["limits"][0]["quota"] == "5/min"
    said = {(note.line, note.what.split()[0]) for note in found.notes}
    assert {
        (10, "keyGenerator"),
        (11, "skip"),
        (9, "...9"),
        (12, "handler"),
        (15, "refuses"),
        (15, "skipSuccessfulRequests"),
    } <= said
    assert "slowDown" in notes(found)


@pytest.mark.parametrize(
    ("options", "quota"),
    [
        ({"windowMs": 60_000, "limit": 10}, "10/min"),
        ({"windowMs": 60_000, "max": 10}, "10/min"),
        ({"windowMs": "15 * 60 * 1000", "limit": 3}, "3 per 15 min"),
        ({"windowMs": 86_400_000, "limit": 3}, "3/day"),
        ({"windowMs": 1500, "limit": 3}, "3 per 1500 ms"),
        ({"windowMs": 1.0e3, "limit": 3}, "3/s"),
        ({"limit": 7}, "7/min"),
        ({"points": 6, "duration": 10}, "6 per 10 s"),
        ({"max": 100, "timeWindow": "1 minute"}, "100/min"),
        ({"max": 100, "timeWindow": 30_000}, "100 per 30 s"),
    ],
)
def test_numbers(options: dict[str, Any], quota: str) -> None:
    """Windows in milliseconds, old names and new, defaults, and rate-limiter-flexible's points in seconds."""
    assert limits(converted(json.dumps(options), "express"))[0]["quota"] == quota


def test_several_limiters_in_json() -> None:
    """An array and an object of limiters by name give a policy for each."""
    one, two = {"windowMs": 1000, "limit": 1}, {"windowMs": 2000, "limit": 2}
    assert list(tomllib.loads(converted(json.dumps([one, two])).text)["policies"]) == ["limiter-1", "limiter-2"]
    named = {"api": one, "sign in": {**two, "statusCode": 429}}
    assert list(tomllib.loads(converted(json.dumps(named, indent=2)).text)["policies"]) == ["api", "sign-in"]


def test_nothing_to_note_for_what_is_exact() -> None:
    """Options that only say how a refusal looks leave no note, so --strict lets them pass."""
    options = {
        "windowMs": 60_000,
        "limit": 10,
        "standardHeaders": "draft-8",
        "legacyHeaders": False,
        "statusCode": 429,
        "message": "x",
    }
    assert converted(json.dumps(options)).notes == ()


def test_a_limit_of_0_blocks() -> None:
    """0 blocks, with another status than there."""
    found = converted('{"windowMs": 1000, "limit": 0}')
    assert limits(found)[0]["block"] is True
    assert "403" in notes(found)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "windowMs": -1, "limit": 1}', 2, "windowMs"),
        ('{"windowMs": 1000,\n "limit": "many"}', 2, "many"),
        ('{"windowMs": 1000,\n "limit": 1.5}', 2, "1.5"),
        ('{"windowMs": 1000, "limit": 1', 1, "JSON"),
        ('[{"windowMs": 1000, "limit": 1}, 7]', 1, "7"),
        ("rateLimit({\n windowMs: 1000,\n limit: 1\n", 4, "comma"),
        ("rateLimit({\n windowMs: 1000, 'limit: 1 })", 2, "quotes"),
        ("rateLimit({\n windowMs: later(), limit: 1 })", 2, "windowMs"),
        ("rateLimit({\n =: 1 })", 2, "option"),
        ("const x = 1;", None, "rateLimit"),
        ('{"max": 1, "timeWindow": "soon"}', 1, "timeWindow"),
        ('{"windowMs": 100000000000000000, "limit": 1}', 1, "windowMs"),
    ],
)
def test_a_mistake_is_one_error_with_its_line(text: str, line: int | None, words: str) -> None:
    """Options that cannot be are one clear error with file and line."""
    with pytest.raises(ConfigError, match=words) as caught:
        converted(text, "express")
    assert (caught.value.file, caught.value.line) == ("given", line)


@given(st.text(alphabet=st.sampled_from("{}[]()'\"`,:.*/ \n=>windowMs10ratelim"), max_size=100))
def test_no_text_raises_anything_else(text: str) -> None:
    """Whatever is fed to it, the only exception is the one with the file's name, and it ends."""
    for whole in (
        text,
        f"rateLimit({{{text}",
        f"rateLimit({{ windowMs: 1000, limit: {text} }})",
        f'{{"windowMs": 1000, {text}',
    ):
        try:
            converted(whole, "express")
        except ConfigError as error:
            assert error.file == "given"
