"""What a caller asks for: from the bytes of a body to ``CheckRequest`` values, or the ``Fault`` that says what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from headway.policy.spelling import nearest
from headway.service.fault import Fault
from headway.service.lease import Held, read_lease

__all__ = ["MAX_BATCH", "CheckRequest", "read_body", "read_release", "read_request"]

MAX_BATCH: Final = 1000
"""The most requests in one batch."""

_MEMBERS: Final = ("policy", "attributes", "cost")
_MOST_DIGITS: Final = 4300
"""Digits that Python reads as a number without being asked; what has more fits no limit, whatever its last digits are."""

_EXPECTED: Final = '{"policy": "NAME", "attributes": {"NAME": "VALUE"}, "cost": 1}'
_RELEASE: Final = '{"lease": "…"} with the text that /v1/check gave as "lease"'
_COST: Final = "a whole number from 0, or an object of such numbers by limit name"


class _Long(str):
    """A whole number with more digits than anything is counted in, as it was written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """One request for a decision.

    Attributes:
        policy: the policy's name.
        attributes: what is known of the request.
        cost: units for every limit without a fixed cost, or by limit name.
    """

    policy: str
    attributes: Mapping[str, str | int]
    cost: int | Mapping[str, int] = 1


def read_body(body: bytes) -> object | Fault:
    """The JSON of a body; its content type does not matter. A member given twice and NaN are no JSON here."""
    try:
        found: object = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_whole
        )
    except UnicodeDecodeError as error:
        return _not_json(f"the body is not UTF-8: {error.reason} at byte {error.start}")
    except json.JSONDecodeError as error:
        said = f"{error.msg} at line {error.lineno}, column {error.colno}" if body.strip() else "it is empty"
        return _not_json(f"the body is not JSON: {said}")
    except ValueError as error:
        return _not_json(f"the body is not usable JSON: {error}")
    except RecursionError:
        return _not_json("the body is nested too deeply")
    return found


def read_request(item: object, where: str = "") -> CheckRequest | Fault:
    """One request from its JSON.

    Args:
        item: what ``read_body`` gave, or one element of it.
        where: a JSON pointer to it.
    """
    if not isinstance(item, dict):
        return _invalid(where, f"a request is an object, not {_said(item)}", _EXPECTED)
    for name in item:
        if name not in _MEMBERS:
            meant = nearest(name, _MEMBERS)
            hint = f"; did you mean {meant!r}?" if meant else ""
            return _invalid(f"{where}/{_pointed(name)}", f"unknown member {name!r}{hint}", _EXPECTED)
    policy = item.get("policy")
    if not isinstance(policy, str):
        said = f"policy is {_said(policy)}" if "policy" in item else "policy is missing"
        return _invalid(f"{where}/policy", said, "the name of a policy, a string; GET /v1/policies lists them")
    attributes = item.get("attributes", {})
    fault = _check_attributes(attributes, f"{where}/attributes")
    if fault is None:
        fault = _check_cost(item.get("cost", 1), f"{where}/cost")
    return fault or CheckRequest(policy, attributes, _counted(item.get("cost", 1)))


def read_release(item: object, where: str = "") -> Held | Fault:
    """One lease to give back or to renew, from its JSON; see ``read_request``."""
    if not isinstance(item, dict):
        return _invalid(where, f"a request is an object, not {_said(item)}", _RELEASE)
    for name in item:
        if name != "lease":
            return _invalid(f"{where}/{_pointed(name)}", f"unknown member {name!r}", _RELEASE)
    if "lease" not in item:
        return _invalid(f"{where}/lease", "lease is missing", _RELEASE)
    return read_lease(item["lease"], f"{where}/lease")


def _check_attributes(attributes: object, where: str) -> Fault | None:
    if not isinstance(attributes, dict):
        return _invalid(where, f"attributes is {_said(attributes)}", 'an object such as {"phone": "+447700900123"}')
    for name, value in attributes.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            said = f"attribute {name!r} is {_said(value)}"
            return _invalid(f"{where}/{_pointed(name)}", said, "a string or an integer")
    return None


def _check_cost(cost: object, where: str) -> Fault | None:
    if isinstance(cost, dict):
        for name, units in cost.items():
            if fault := _check_units(units, f"the cost of {name!r}", f"{where}/{_pointed(name)}"):
                return fault
        return None
    return _check_units(cost, "cost", where)


def _check_units(units: object, name: str, where: str) -> Fault | None:
    if isinstance(units, _Long):
        return _invalid(where, f"{name} is negative: {_said(units)}", _COST) if units.startswith("-") else None
    if isinstance(units, bool) or not isinstance(units, int):
        return _invalid(where, f"{name} is {_said(units)}", _COST)
    return _invalid(where, f"{name} is negative: {_said(units)}", _COST) if units < 0 else None


def _counted(cost: Any) -> Any:
    """A checked cost in numbers: a long one counts as the largest that is read, which is above every burst too."""
    if isinstance(cost, dict):
        return {name: _counted(units) for name, units in cost.items()}
    return 10 ** (_MOST_DIGITS - 1) if isinstance(cost, _Long) else cost


def _whole(digits: str) -> int | _Long:
    return int(digits) if len(digits) <= _MOST_DIGITS else _Long(digits)


def _said(value: object) -> str:
    """A JSON value's kind for a message, with the value where it is short."""
    match value:
        case _Long():
            return f"{value[:57]}..., an integer"
        case None:
            return "null"
        case dict():
            return "an object"
        case list():
            return "an array"
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    kinds = {bool: "a boolean", str: "a string", int: "an integer", float: "a number with a fraction or an exponent"}
    return f"{shown}, {kinds[type(value)]}"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the member {twice!r} is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _pointed(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _not_json(detail: str) -> Fault:
    return Fault(400, detail, "urn:headway:not-json", f"JSON in UTF-8: {_EXPECTED}, or an array of these")


def _invalid(where: str, detail: str, expected: str) -> Fault:
    return Fault(422, detail, "urn:headway:invalid-request", expected, where)
