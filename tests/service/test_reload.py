"""``headway serve`` while its policy file changes: what is served, what is kept, and what is said."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
from serving import DEADLINE_S, Service, run, serving

ONE = '[[policies.codes.limits]]\nname = "resend"\nquota = "2 per day"\nby = "phone"\n'
SQLITE = f'store = "sqlite:///state.db"\n{ONE}'


class Said:
    """What the service says on standard error, line by line."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.text = ""

    def until(self, words: str) -> str:
        """Everything up to a line that holds these words; fails when they do not come in time."""
        stream = self.service.process.stderr
        assert stream is not None
        give_up = time.monotonic() + DEADLINE_S
        while not any(words in line for line in self.text.splitlines(keepends=True) if line.endswith("\n")):
            readable, _, _ = select.select([stream], [], [], max(0, give_up - time.monotonic()))
            more = os.read(stream.fileno(), 65536).decode() if readable else ""
            assert more, f"{words!r} was not said; but: {self.text!r}"
            self.text += more
        said, self.text = self.text, ""
        return said

    def after_hangup(self, words: str = "reloaded") -> str:
        """The same, after a SIGHUP."""
        self.service.process.send_signal(signal.SIGHUP)
        return self.until(words)


def write(folder: Path, text: str) -> None:
    """Replace the policy file in one step, as careful editors do."""
    draft = folder / "limits.toml.draft"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / "limits.toml")


def quotas(service: Service) -> dict[str, list[str]]:
    """What GET /v1/policies says of the quotas, by policy."""
    policies = service.client.get("/v1/policies").json()["policies"]
    return {policy["name"]: [limit["quota"] for limit in policy["limits"]] for policy in policies}


@pytest.mark.parametrize("text", [ONE, SQLITE], ids=["memory", "sqlite"])
def test_a_changed_quota_counts_at_once_and_keeps_state(tmp_path: Path, text: str) -> None:
    """SIGHUP: what is in use stays in use under the new quota, and one line says what changed."""
    with serving(tmp_path, text) as service:
        said = Said(service)
        assert [service.check(phone="1").status_code for _ in range(3)] == [200, 200, 429]
        write(tmp_path, text.replace("2 per day", "4 per day"))
        assert said.after_hangup() == f"headway serve: {tmp_path / 'limits.toml'} was reloaded: changed codes\n"
        assert quotas(service) == {"codes": ["4/day"]}
        remaining = service.peek(phone="2").json()["remaining"]
        assert remaining == 3
        refused = service.check(phone="1")
        assert refused.status_code == 429
        assert refused.json()["retry_after_ms"] <= 6 * 3600 * 1000  # a day is owed, and a unit is a quarter of one


def test_windows_keep_their_units(tmp_path: Path) -> None:
    """A window's used units stay used, whichever way the quota moves; no wait becomes endless or negative."""
    text = ONE.replace('"2 per day"', '"2 per day"\nalgorithm = "fixed-window"')
    with serving(tmp_path, text) as service:
        said = Said(service)
        assert [service.check(phone="1").status_code for _ in range(3)] == [200, 200, 429]
        write(tmp_path, text.replace("2 per", "3 per"))
        said.after_hangup()
        assert [service.check(phone="1").status_code for _ in range(2)] == [200, 429]
        write(tmp_path, text.replace("2 per", "1 per"))
        said.after_hangup()
        assert 0 < service.check(phone="1").json()["retry_after_ms"] <= 86_400_000


def test_a_change_is_seen_without_a_signal(tmp_path: Path) -> None:
    """Written in place, or replaced by an editor that renames: both are seen within seconds."""
    with serving(tmp_path, ONE) as service:
        said = Said(service)
        with (tmp_path / "limits.toml").open("a", encoding="utf-8") as file:
            file.write('[[policies.more.limits]]\nname = "l"\nquota = "1/s"\n')
        said.until("added more")
        write(tmp_path, '[[policies.other.limits]]\nname = "l"\nquota = "1/s"\n')
        assert "was reloaded: added other; removed codes, more" in said.until("reloaded")
        assert quotas(service) == {"other": ["1/s"]}
        assert service.check(phone="1").status_code == 404
        assert service.check("other").status_code == 200


def test_a_bad_file_changes_nothing_and_says_why(tmp_path: Path) -> None:
    """Every problem with its line, the old policies go on; once mended, the file is served."""
    with serving(tmp_path, ONE) as service:
        said = Said(service)
        path = tmp_path / "limits.toml"
        for bad, lines in {
            ONE.replace("2 per day", "2 per") + "cots = 1\n": (
                f"{path}:3: policies.codes",
                f"{path}:5: policies.codes",
            ),
            "[policies": (f"{path}:1: is not TOML",),
            "": (f"{path}: policies: there is no policy",),
        }.items():
            write(tmp_path, bad)
            heard = said.after_hangup()
            assert all(f"headway serve: {line}" in heard for line in lines)
            assert f"{path} was not reloaded; the policies stay as they were" in heard
            assert quotas(service) == {"codes": ["2/day"]}
        path.unlink()
        assert "no such file" in said.until("not reloaded")
        assert service.check(phone="1").status_code == 200
        write(tmp_path, ONE.replace("2 per", "5 per"))
        said.until("was reloaded: changed codes")
        assert quotas(service) == {"codes": ["5/day"]}


@pytest.mark.parametrize(
    ("line", "key"),
    [('store = "sqlite:///other.db"', "store"), ('namespace = "other"', "namespace"), ("deadline = 50", "deadline")],
)
def test_what_needs_a_restart_is_refused(tmp_path: Path, line: str, key: str) -> None:
    """Another store, namespace or deadline is not taken up halfway: nothing changes, and a restart is asked for."""
    with serving(tmp_path, ONE) as service:
        write(tmp_path, f"{line}\n{ONE.replace('2 per', '9 per')}")
        heard = Said(service).after_hangup()
        assert f"was not reloaded: {key} changed" in heard
        assert "restart" in heard
        assert quotas(service) == {"codes": ["2/day"]}
        assert not (tmp_path / "other.db").exists()


def test_keys_of_secret_attributes_are_kept(tmp_path: Path) -> None:
    """The key that values are hashed with outlives a reload, and a first secret limit gets one."""
    for store in ("", 'store = "sqlite:///state.db"\n'):
        text = f"{store}{ONE}secret = true\n"
        with serving(tmp_path, text) as service:
            said = Said(service)
            assert [service.check(phone="1").status_code for _ in range(3)] == [200, 200, 429]
            write(tmp_path, text + 'text = "No."\n')
            said.after_hangup("changed codes")
            assert service.check(phone="1").status_code == 429
    with serving(tmp_path, f'store = "sqlite:///new.db"\n{ONE}') as service:
        write(tmp_path, f'store = "sqlite:///new.db"\n{ONE}secret = true\n')
        Said(service).after_hangup("changed codes")
        assert [service.check(phone="1").status_code for _ in range(3)] == [200, 200, 429]
        assert (tmp_path / "new.db.key").exists()


def test_the_built_in_policies_outlive_a_hangup(tmp_path: Path) -> None:
    """There is no file to read again, and the service goes on."""
    with serving(tmp_path) as service:
        Said(service).after_hangup("nothing to reload")
        assert service.client.get("/healthz").status_code == 200


def test_no_request_is_lost_while_the_policies_change(tmp_path: Path) -> None:
    """Under a steady stream of requests every one gets a decision of the old policies or of the new, none a failure."""
    with serving(tmp_path, ONE) as service:
        said = Said(service)
        statuses: set[int] = set()
        done, answered = threading.Event(), threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.url, timeout=DEADLINE_S, trust_env=False) as client:
                while not done.is_set():
                    body = [{"policy": "codes", "attributes": {"phone": "1"}}] * 10
                    statuses.update(item["status"] for item in client.post("/v1/check", json=body).json())
                    answered.set()

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for count in range(3, 13):
            answered.clear()
            assert answered.wait(DEADLINE_S)
            write(tmp_path, ONE.replace("2 per", f"{count} per"))
            said.after_hangup("changed codes")
        done.set()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert statuses == {200, 429}
        assert quotas(service) == {"codes": ["12/day"]}
        assert service.stop()[0] == 0


DEPENDS = """
[policies.api]
exempt = [{ account = "internal" }]
ban = [{ account = "eve" }]

[[policies.api.limits]]
name = "per-account"
quota = { free = "1/day", pro = "2/day" }
tier = "plan"
unknown_tier = "error"
by = "account"
overrides = { acme = "3/day" }

[[policies.api.limits]]
name = "writes"
quota = "1/day"
by = "account"
when = { method = "POST" }
shadow = true
"""


def test_limits_that_depend_on_the_request_are_served(tmp_path: Path) -> None:
    """Tiers, overrides, bans, exemptions, conditions and shadow limits decide over HTTP as they do in a program."""
    with serving(tmp_path, DEPENDS) as service:

        def statuses(count: int, **attributes: object) -> list[int]:
            return [service.check("api", **{"method": "GET", **attributes}).status_code for _ in range(count)]

        assert statuses(2, account="a", plan="free") == [200, 429]
        assert statuses(3, account="b", plan="pro") == [200, 200, 429]
        assert statuses(4, account="acme", plan="free") == [200, 200, 200, 429]
        assert statuses(3, account="internal") == [200, 200, 200]
        banned = service.check("api", account="eve", plan="free", method="GET")
        assert (banned.status_code, banned.json()["type"]) == (403, "urn:headway:blocked")
        assert "retry-after" not in banned.headers
        unknown = service.check("api", account="c", plan="gold", method="GET").json()
        assert (unknown["status"], unknown["pointer"]) == (422, "/attributes/plan")
        assert "expected one of free, pro" in unknown["detail"]
        missing = service.check("api", account="c", method="GET").json()
        assert (missing["status"], missing["pointer"]) == (422, "/attributes/plan")
        assert statuses(1, account="c", plan="free") == [200]


def test_shadow_limits_are_counted_and_never_shown(tmp_path: Path) -> None:
    """The answer names them, the list of policies counts them, and no field or refusal does."""
    with serving(tmp_path, DEPENDS) as service:
        ask = {"account": "acme", "plan": "free", "method": "POST"}
        answers = [service.check("api", **ask) for _ in range(4)]
        assert [answer.json().get("shadowed") for answer in answers] == [None, ["writes"], ["writes"], None]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        for answer in answers:
            assert all("writes" not in value for value in answer.headers.values())
        refused = answers[-1].json()
        assert (refused["limit"], refused["violated-policies"]) == ("per-account", ["per-account"])
        assert service.peek("api", **ask).status_code == 429
        (policy,) = service.client.get("/v1/policies").json()["policies"]
        counted = {limit["name"]: limit.get("would_have_refused") for limit in policy["limits"]}
        assert counted == {"banned": None, "per-account": None, "writes": 3}
        assert policy["exempt"] == "1 entry by account"
        assert policy["attributes"] == ["account", "plan", "method"]


def test_the_line_to_paste_fits_limits_that_depend(tmp_path: Path) -> None:
    """What is printed at the start asks with a tier and a method that mean something."""
    with serving(tmp_path, DEPENDS) as service:
        line = next(line for line in service.greeting.splitlines() if line.startswith("curl "))
        assert '"plan": "free"' in line
        assert '"method": "POST"' in line
        assert "refusal" not in service.greeting


def test_the_shell_knows_limits_that_depend(tmp_path: Path) -> None:
    """``headway check`` and ``check-policy`` read the same file."""
    text = f'store = "sqlite:///state.db"\n{DEPENDS}'
    (tmp_path / "limits.toml").write_text(text, encoding="utf-8")

    def check(*words: str) -> int:
        return run(tmp_path, "check", "api", "method=GET", *words, "--policy-file", "limits.toml").returncode

    assert [check("account=a", "plan=free") for _ in range(2)] == [0, 75]
    assert check("account=eve", "plan=free") == 77
    assert [check("account=internal") for _ in range(2)] == [0, 0]
    assert check("account=c", "plan=gold") == 64
    shown = run(tmp_path, "check-policy", "limits.toml").stdout
    assert "per-account by account (free 1/day, pro 2/day by plan (unknown: error, missing: error); 1 account" in shown
    assert "(when method is POST)" in shown
    assert "banned (blocks 1 entry by account)" in shown
    assert "exempt: 1 entry by account" in shown
