"""What ``headway serve`` prints when it listens: where, and three lines to paste into another shell."""

from __future__ import annotations

import json
import secrets
import shlex
from ipaddress import ip_address

from headway.core.limit import Limit
from headway.policy.choice import Choice
from headway.policy.conditional import When
from headway.policy.matching import Condition
from headway.policy.overrides import Overridden
from headway.policy.policy import Policy, PolicyFile
from headway.policy.tiers import TieredLimit

__all__ = ["base_url", "is_loopback", "welcome"]


def welcome(file: PolicyFile, url: str, store: str) -> str:
    """Several lines of text.

    Args:
        file: the policies that are served; the lines to paste ask for the first one.
        url: where the service listens, without a slash at the end.
        store: what keeps the state, as people read it.
    """
    names = ", ".join(file.policies)
    lines = [f"headway serves {names} at {url} (state in {store}); Ctrl-C stops it.", ""]
    policy = next(iter(file.policies.values()))
    body = json.dumps({"policy": policy.name, "attributes": _example_attributes(policy)})
    check = f"curl -i {url}/v1/check -d {shlex.quote(body)}"
    plain = (limit for limit in policy.limits if isinstance(limit, Limit) and not limit.shadow)
    refusing = next((limit for limit in plain if limit.quota.burst == 1), None)
    said = f" The second answer is a refusal: {refusing.name} admits {refusing.quota}." if refusing else ""
    lines += [f"Try it from another shell.{said}", "", check, check, f"curl {url}/v1/policies"]
    return "\n".join(lines)


def base_url(host: str, port: int) -> str:
    """The URL that reaches a socket bound to ``host``, from this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    return ip_address(host.split("%", 1)[0]).is_loopback


def _example_attributes(policy: Policy) -> dict[str, str]:
    """Values that nobody has: numbers that Ofcom keeps for drama, addresses that RFC 5737 keeps for documentation.

    They differ from start to start, so that what was tried before does not refuse what is tried now.
    """
    known: dict[str, str] = {}
    for limit in policy.limits:
        known = {**_known(limit), **known}
    return {name: known.get(name) or _example(name) for name in policy.attributes}


def _known(limit: Limit | Choice) -> dict[str, str]:
    """Values that mean something to a limit: a tier, what its conditions ask for."""
    match limit:
        case TieredLimit():
            return {limit.tier: next(iter(limit.tiers))}
        case Overridden():
            return _known(limit.limit)
        case When():
            wanted = limit.conditions.alternatives[0].parts
            values = {part.attribute: _meeting(part) for part in wanted}
            return {**{name: value for name, value in values.items() if value}, **_known(limit.limit)}
    return {}


def _meeting(condition: Condition) -> str | None:
    """A value that meets a condition, where one is easily found."""
    if condition.bounds:
        name, bound = condition.bounds[0]
        return str({"above": bound + 1, "below": bound - 1}.get(name, bound))
    return next((text for text in condition.among.written if text.isalnum()), None) if condition.among else None


def _example(attribute: str) -> str:
    words = attribute.lower().split("_")
    if "phone" in words:
        return f"+447700900{secrets.randbelow(1000):03d}"
    if "ip" in words or "address" in words:
        return f"203.0.113.{1 + secrets.randbelow(254)}"
    return f"example-{secrets.randbelow(10000):04d}"
