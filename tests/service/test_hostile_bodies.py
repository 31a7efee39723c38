"""Bodies that a stranger made to be expensive: what they cost grows with their length and no faster."""

from __future__ import annotations

import json
import time

from headway.service.fault import Fault
from headway.service.request import read_body, read_request
from headway.service.starlette import MAX_BODY


def _took(body: bytes) -> float:
    """Seconds that reading took, to a fault."""
    assert len(body) <= MAX_BODY
    began = time.monotonic()
    found = read_body(body)
    assert isinstance(found if isinstance(found, Fault) else read_request(found), Fault)
    return time.monotonic() - began


def test_a_member_given_twice_among_many_is_found_at_once() -> None:
    """A hundred thousand members of which the last comes twice: not each compared with all, which took minutes."""
    names = [f"{number:x}" for number in range(90_000)]
    body = "{" + ",".join(f'"{name}":1' for name in [*names, names[-1]]) + "}"
    assert _took(body.encode()) < 10


def test_a_long_name_is_not_compared_with_what_is_known() -> None:
    """A member's name of a megabyte costs no more than reading it, and no guess at what was meant."""
    body = json.dumps({"polic" + "y" * 1_000_000: 1}).encode()
    assert _took(body) < 10
    fault = read_request(json.loads(body))
    assert isinstance(fault, Fault)
    assert "did you mean" not in fault.detail
