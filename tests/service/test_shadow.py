"""What ``headway serve`` says of shadow limits: over HTTP, on SIGHUP and at its end."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from pathlib import Path
from typing import Any

from serving import DEADLINE_S, Service, serving

POLICIES = """
[[policies.api.limits]]
name = "api"
quota = { free = "3/day", pro = "30/day" }
tier = "plan"
by = "account"

[[policies.api.limits]]
name = "trial"
quota = "2/day"
by = "account"
shadow = true

[[policies.plain.limits]]
name = "all"
quota = "100/day"
"""


def counts(service: Service) -> dict[tuple[str, str | None], dict[str, Any]]:
    """What /v1/shadow says, by limit and tier, of the one policy that has a shadow limit."""
    (policy,) = service.client.get("/v1/shadow").json()["policies"]
    assert policy["name"] == "api"
    return {(count["limit"], count["tier"]): count for count in policy["counts"]}


def test_what_shadow_limits_would_have_refused_is_served_and_said_at_the_end(tmp_path: Path) -> None:
    """/v1/shadow has the counts by tier, /v1/policies the total; refusals are the enforced limits' alone."""
    with serving(tmp_path, POLICIES) as service:
        assert service.client.get("/v1/shadow").json()["policies"][0]["counts"][0]["requests"] == 0
        statuses = [service.check("api", account="a", plan="free").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        for _ in range(3):
            assert service.check("api", account="b", plan="pro").status_code == 200
        service.peek("api", account="c", plan="pro")
        service.check("plain")
        found = counts(service)
        assert [found["trial", tier]["requests"] for tier in (None, "free", "pro")] == [7, 4, 3]
        assert [found["trial", tier]["would_refuse"] for tier in (None, "free", "pro")] == [3, 2, 1]
        assert [found["trial", tier]["newly_refused"] for tier in (None, "free", "pro")] == [2, 1, 1]
        assert (found["trial", None]["callers"], found["trial", None]["callers_share"]) == (2, 1.0)
        limits = service.client.get("/v1/policies").json()["policies"][0]["limits"]
        assert [limit.get("would_have_refused") for limit in limits] == [None, 3]
        code, said = service.stop()
    assert code == 0
    assert (
        "headway serve: shadow limit api/trial: would have refused 42.9 % (3 of 7) of the requests "
        "and 100 % (2 of 2) of the callers; refused anyway: 1\n"
    ) in said
    assert "shadow limit api/trial: would have refused 33.3 % (1 of 3) of the requests of tier pro" in said


def test_a_hangup_says_it_and_a_changed_policy_is_counted_anew(tmp_path: Path) -> None:
    """SIGHUP prints the counts; an unchanged policy keeps them, one that changed begins again."""
    with serving(tmp_path, POLICIES) as service:
        for _ in range(3):
            service.check("api", account="b", plan="pro")
        assert "(1 of 3) of the requests and" in _after_hangup(service)
        assert counts(service)["trial", None]["requests"] == 3
        (tmp_path / "limits.toml").write_text(POLICIES.replace("2/day", "1/day"), "utf-8")
        assert "changed api" in _after_hangup(service)
        assert counts(service)["trial", None]["requests"] == 0


def test_without_shadow_limits_nothing_is_said(tmp_path: Path) -> None:
    """The list is empty, and the end is as quiet as ever."""
    with serving(tmp_path) as service:
        assert service.client.get("/v1/shadow").json() == {"policies": []}
        _, said = service.stop()
    assert "shadow" not in said


def _after_hangup(service: Service) -> str:
    """What is said from a SIGHUP to the line that ends the reload."""
    assert service.process.stderr is not None
    service.process.send_signal(signal.SIGHUP)
    said, give_up = "", time.monotonic() + DEADLINE_S
    while not re.search(r"was reloaded: .*\n", said):
        readable, _, _ = select.select([service.process.stderr], [], [], max(0, give_up - time.monotonic()))
        more = os.read(service.process.stderr.fileno(), 65536).decode() if readable else ""
        assert more, f"no reload was said: {said!r}"
        said += more
    return said
