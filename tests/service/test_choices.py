"""What ``GET /v1/policies`` says of limits that depend on the request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headway import MemoryStore
from headway.policy.toml import read_policy_text
from headway.service.api import Api
from headway.service.openapi import openapi_document

TEXT = """
[policies.api]
ban = [{ ip = "203.0.113.0/24" }, { account = { is = "eve", missing = false } }]

[[policies.api.limits]]
name = "per-account"
quota = { free = "60/min", pro = "600/min", partner = "unlimited", ended = "block" }
tier = "plan"
unknown_tier = "free"
missing_tier = "refuse"
by = "account"
overrides = { acme = "1000/min", mallory = "block" }
when = { method = ["POST", "PUT"] }

[[policies.api.limits]]
name = "all"
quota = "1000/s"
"""


def limits() -> dict[str, dict[str, Any]]:
    """The policy's limits by name, as a program reads them."""
    file = read_policy_text(TEXT, file="limits.toml", folder=Path("/etc")).policies()
    (policy,) = json.loads(Api(file, MemoryStore()).policies().body)["policies"]
    return {limit["name"]: limit for limit in policy["limits"]}


def test_a_program_need_not_read_words_to_know_each_tier() -> None:
    """Tiers with their quotas, the choices for others, conditions, and how many are treated otherwise."""
    found = limits()["per-account"]
    assert {name: found[name] for name in ("tier", "tiers", "unknown_tier", "missing_tier", "overrides", "when")} == {
        "tier": "plan",
        "tiers": {"free": "60/minute", "pro": "600/minute", "partner": "unlimited", "ended": "block"},
        "unknown_tier": "free",
        "missing_tier": "refuse",
        "overrides": 2,
        "when": "method is POST or PUT",
    }
    assert limits()["banned"]["bans"] == 2


def test_nobody_is_named() -> None:
    """Who is banned or has a quota of their own is counted: the limits are for all to see, those people are not."""
    said = json.dumps(limits())
    assert not any(name in said for name in ("eve", "203.0.113", "acme", "mallory"))


def test_a_plain_limit_says_nothing_of_requests() -> None:
    """Its document is what it was, and every key is one that the description knows."""
    known = openapi_document()["components"]["schemas"]["Limit"]
    for limit in limits().values():
        assert set(known["required"]) <= limit.keys() <= set(known["properties"])
    assert limits()["all"].keys() == set(known["required"])
