"""envoyproxy/ratelimit's YAML: converted, it decides as the service would."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.convert.policies import converted, limiter, limits, notes
from headway.errors import ConfigError
from headway.testing.clock import ManualClock

SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_592_000,
    "year": 31_536_000,
}
KEYS = ("tenant", "path")
VALUES = ("a", "b", "ab", "c")


class Service:
    """envoyproxy/ratelimit as its source describes it, for requests of one descriptor: its own code, none of ours."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.counters: dict[tuple[Any, ...], int] = {}

    def allows(self, entries: list[tuple[str, str]], now: float, hits: int) -> bool:
        nodes = self.config["descriptors"]
        node: dict[str, Any] | None = None
        parts: list[tuple[str, str]] = []
        for place, (key, value) in enumerate(entries):
            node = self.match(nodes, key, value)
            if node is None:
                return True
            shared = node.get("share_threshold") and "*" in node.get("value", "")
            parts.append((key, node["value"] if shared else value))
            limit = node.get("rate_limit")
            if limit is not None and place == len(entries) - 1:
                if limit.get("unlimited"):
                    return True
                length = SECONDS[limit["unit"]]
                counter = (*parts, int(now) // length)
                self.counters[counter] = self.counters.get(counter, 0) + hits
                over = self.counters[counter] > limit["requests_per_unit"]
                return not over or node.get("shadow_mode") is True
            nodes = node.get("descriptors") or []
        return True

    @staticmethod
    def match(nodes: list[dict[str, Any]], key: str, value: str) -> dict[str, Any] | None:
        same = [node for node in nodes if node["key"] == key]
        exact = [node for node in same if node.get("value") == value]
        wild = [node for node in same if "*" in node.get("value", "") and fnmatchcase(value, node["value"])]
        bare = [node for node in same if "value" not in node]
        return next(iter(exact + wild + bare), None)


def random_level(random: random.Random, depth: int) -> list[dict[str, Any]]:
    nodes: dict[tuple[str, str | None], dict[str, Any]] = {}
    key = KEYS[2 - depth]
    for _ in range(random.randint(1, 4)):
        value = random.choice((None, "a", "b", "a*", "*b", "*"))
        node: dict[str, Any] = {"key": key} | ({"value": value} if value else {})
        if random.random() < 0.75:
            node["rate_limit"] = (
                {"unlimited": True}
                if random.random() < 0.15
                else {"unit": random.choice(list(SECONDS)), "requests_per_unit": random.choice((2, 3, 7))}
            )
        if random.random() < 0.15:
            node["shadow_mode"] = True
        if value and "*" in value and random.random() < 0.5:
            node["share_threshold"] = True
        if depth > 1 and random.random() < 0.6:
            node["descriptors"] = random_level(random, depth - 1)
        nodes.setdefault((key, value), node)
    return list(nodes.values())


@pytest.mark.parametrize("seed", range(60))
def test_a_converted_file_decides_as_the_service_would(seed: int) -> None:
    """Random files, random requests of one descriptor at random times and costs: every decision is the same."""
    chance = random.Random(seed)
    config = {"domain": "edge", "descriptors": random_level(chance, 2)}
    service = Service(config)
    clock = ManualClock()
    text = yaml.safe_dump(config)
    if not converted(text).text.count("[[policies.edge.limits]]"):
        return
    ours = limiter(text, clock)
    cheap = seed % 2 == 0  # every other run has costs of 2 as well, which no limit here is too small for
    deepest = 2 if any("descriptors" in node for node in config["descriptors"]) else 1
    for _ in range(300):
        clock.advance(chance.choice((0, 0.2, 1, 7, 61, 4000)))
        entries = [(key, chance.choice(VALUES)) for key in KEYS[: chance.randint(1, deepest)]]
        hits = chance.choice((1, 1, 1, 2)) if cheap else 1
        now = clock.now / 1e9
        decision = ours.hit(dict(entries), cost=hits)
        assert decision.allowed == service.allows(entries, now, hits), (config, entries, hits)


@pytest.mark.parametrize("unit", SECONDS)
def test_every_unit(unit: str) -> None:
    """All seven units, in any case, are windows of exactly their length; a month is 30 days and a year 365."""
    text = f"domain: d\ndescriptors:\n- key: k\n  rate_limit: {{unit: {unit.upper()}, requests_per_unit: 2}}\n"
    clock = ManualClock()
    ours = limiter(text, clock)
    clock.advance(SECONDS[unit] - (clock.now / 1e9) % SECONDS[unit] + 0.5)
    assert [ours.hit(k="x").allowed for _ in range(3)] == [True, True, False]
    assert ours.hit(k="x").retry_after == pytest.approx(SECONDS[unit] - 0.5)


WHOLE = """
domain: api.example
descriptors:
  - key: generic_key
    value: slow
    rate_limit: {unit: minute, requests_per_unit: 10, name: slow, replaces: [{name: fast}]}
    detailed_metric: true
  - key: remote-address
    quota_mode: true
    rate_limit: {unit: second, requests_per_unit: 50}
    metadata: {owner: edge}
  - key: masked_remote_address
    value: 10.0.0.0/24
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 0}
"""


def test_what_is_not_exact_is_said_with_its_line() -> None:
    """Replacing, quota mode, metrics, metadata, a block's status and address ranges are noted, each once, at its line."""
    found = converted(WHOLE)
    said = {(note.line, note.limit, note.what.split()[0]) for note in found.notes}
    assert {(6, "slow", "it"), (7, "slow", "detailed_metric"), (9, "remote-address", "quota_mode")} <= said
    assert "metadata" in notes(found)
    assert "429" in notes(found)
    assert "address range" in notes(found)
    assert found.text.count("# NOT EXACT") == len(found.notes)
    assert limits(found)[2]["block"] is True
    assert limits(found)[2]["shadow"] is True
    assert limits(found)[1]["by"] == ["remote_address"]
    assert "remote-address is the attribute remote_address" in " ".join(found.text.replace("\n#", "").split())


def test_aliases_and_merges_are_followed() -> None:
    """YAML's anchors and merge keys mean what they mean in YAML."""
    found = converted(
        "domain: d\ndescriptors:\n- &a {key: k, value: x, rate_limit: &r {unit: hour, requests_per_unit: 3}}\n"
        "- {<<: *a, value: y}\n- {key: m, rate_limit: *r}\n"
    )
    assert [limit["quota"] for limit in limits(found)] == ["3/hour"] * 3


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "domain: d\ndescriptors:\n- key: k\n  rate_limit:\n    unit: fortnight\n    requests_per_unit: 1\n",
            5,
            "fortnight",
        ),
        ("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: -1}\n", 4, "-1"),
        (
            "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 4294967296}\n",
            4,
            "4294967296",
        ),
        ("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, unlimited: true}\n", 4, "unlimited"),
        ("domain: d\ndescriptors:\n- key: k\n  ratelimit: {}\n", 4, "ratelimit"),
        ("domain: d\ndescriptors:\n- value: k\n", 3, "key"),
        ("domain: d\ndescriptors:\n- key: k\n- key: k\n", 4, "line 3"),
        ("descriptors:\n- key: k\n", 1, "domain"),
        ("domain: d\ndescriptors: {a: b}\n", 2, "list"),
        ("domain: d\ndescriptors:\n- key: k\n  rate_limit: [1]\n", 4, "rate_limit"),
        ("domain: d\ndomain: e\ndescriptors: []\n", 2, "twice"),
        ("domain: d\ndescriptors: [\n", 3, "YAML"),
        ("domain: d\n  descriptors: []\n", 2, "YAML"),
        ("domain: !!python/object:os.system d\ndescriptors: []\n", 1, "YAML"),
        ("domain: d\ndescriptors:\n- ? [a]\n  : b\n", 3, "plain"),
    ],
)
def test_a_mistake_is_one_error_with_its_line(text: str, line: int, words: str) -> None:
    """What the service would not load is one clear error with file and line."""
    with pytest.raises(ConfigError, match=words) as caught:
        converted(text, "envoy")
    assert (caught.value.file, caught.value.line) == ("given", line)


def test_a_document_that_explodes_is_refused() -> None:
    """Aliases that expand to billions of values, and nesting without an end, are errors, quickly."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError, match=r"expands|nested"):
        converted(f"{bomb}domain: d\ndescriptors: []\n", "envoy")
    with pytest.raises(ConfigError):
        converted("domain: d\ndescriptors: " + "[" * 5000, "envoy")


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))))
def test_no_text_raises_anything_else(text: str) -> None:
    """Whatever is fed to it, the only exception is the one with the file's name."""
    for source in ("envoy", None):
        try:
            converted(f"domain: d\ndescriptors:\n{text}", source)
        except ConfigError as error:
            assert error.file == "given"
