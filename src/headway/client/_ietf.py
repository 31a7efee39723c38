"""The RateLimit fields of the IETF drafts, all revisions (draft-ietf-httpapi-ratelimit-headers-00 to -11 and ahead).

* `RateLimit: "name";r=0;t=12` (-08 to -11) and `a`/`w` in place of `r`/`t` (the next revision); a name may be a Token;
* `RateLimit: limit=100, remaining=0, reset=7` (-07);
* `RateLimit-Policy: "name";q=100;w=60` (-08 on) and `100;w=60` (-04 to -07).

A malformed field is ignored as a whole, the others are still used. The single fields `RateLimit-Limit` and so on
(-00 to -06) are read with the `X-RateLimit-*` families.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.client._headers import HeaderFields
from headway.client._limits import ShownLimit
from headway.presentation.structured import InnerList, Item, parse_dictionary, parse_list

_LONGEST = 1024


def limits_from_ratelimit(fields: HeaderFields, warnings: list[str]) -> tuple[list[ShownLimit], list[ShownLimit]]:
    """Read the `RateLimit` and `RateLimit-Policy` fields.

    Returns:
        The limits, and the policies as limits without a state (named from -08 on, else nameless).
    """
    policies = _policies(fields.joined("ratelimit-policy"), warnings)
    shown = _limits(fields.joined("ratelimit"), warnings)
    by_name = {one.label.lower(): one for one in policies if one.label}
    complete = []
    for one in shown:
        policy = by_name.get(one.label.lower()) if one.label else None
        if policy is not None:
            one = replace(one, limit=policy.limit, window=policy.window)
        complete.append(with_policy(one, policies))
    return complete, policies


def with_policy(one: ShownLimit, policies: list[ShownLimit]) -> ShownLimit:
    """Give a limit the window of the nameless policy that has its quota."""
    if one.window is None and one.limit is not None:
        for policy in policies:
            if not policy.label and policy.limit == one.limit:
                return replace(one, window=policy.window)
    return one


def _too_long(name: str, text: str, warnings: list[str]) -> bool:
    """Whether a field is longer than any honest one; it's ignored as if malformed."""
    if len(text) > _LONGEST:
        warnings.append(f"{name}: {len(text)} characters are too many, and were ignored.")
    return len(text) > _LONGEST


def _limits(text: str | None, warnings: list[str]) -> list[ShownLimit]:
    """Read the `RateLimit` field in either of its forms."""
    if not text or _too_long("RateLimit", text, warnings):
        return []
    try:
        members = parse_list(text)
    except ValueError:
        return _dictionary(text, warnings)
    shown = []
    for member in members:
        one = _limit(member)
        if one is None:
            warnings.append(f"RateLimit: {text[:80]!r} is malformed and was ignored.")
            return []
        shown.append(one)
    return shown


def _limit(member: Item | InnerList) -> ShownLimit | None:
    """Read `"name";r=0;t=12`; None when a number is missing, negative or not whole."""
    if isinstance(member, InnerList) or not isinstance(member.value, str):
        return None
    left = _whole(member.params, "r", "a")
    if left is None:
        return None
    wait = None
    for key in ("t", "w"):
        if key in member.params:
            wait = _whole(member.params, key)
            if wait is None:
                return None
            break
    return ShownLimit(str(member.value), None, left, None if wait is None else float(wait), source="ratelimit")


def _dictionary(text: str, warnings: list[str]) -> list[ShownLimit]:
    """Read draft-07's `limit=100, remaining=0, reset=7`."""
    try:
        members = parse_dictionary(text)
    except ValueError:
        warnings.append(f"RateLimit: {text[:80]!r} is malformed and was ignored.")
        return []
    numbers = {key: member.value for key, member in members.items() if isinstance(member, Item)}
    left, reset = _whole(numbers, "remaining"), _whole(numbers, "reset")
    if left is None:
        warnings.append(f"RateLimit: {text[:80]!r} is malformed and was ignored.")
        return []
    limit = _whole(numbers, "limit")
    return [ShownLimit("", limit, left, None if reset is None else float(reset), source="ratelimit")]


def _policies(text: str | None, warnings: list[str]) -> list[ShownLimit]:
    """Read the `RateLimit-Policy` field."""
    if not text or _too_long("RateLimit-Policy", text, warnings):
        return []
    try:
        members = parse_list(text)
    except ValueError:
        warnings.append(f"RateLimit-Policy: {text[:80]!r} is malformed and was ignored.")
        return []
    policies = []
    for member in members:
        if isinstance(member, InnerList):
            continue
        window = _whole(member.params, "w")
        name = str(member.value) if isinstance(member.value, str) else ""
        quota = _whole(member.params, "q") if name else _whole({"q": member.value}, "q")
        if quota is not None:
            policies.append(ShownLimit(name, quota, window=float(window) if window else None))
    return policies


def _whole(params: Mapping[str, Any], *keys: str) -> int | None:
    """Return the first parameter that is a non-negative Integer."""
    for key in keys:
        value = params.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return int(value)
    return None
