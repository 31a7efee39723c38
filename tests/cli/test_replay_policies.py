"""``headway replay`` of policy files, several logs and any format, as an operator runs it."""

from __future__ import annotations

import gzip
import io
import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.cli import main

PATIENCE_S = 60
TODAY = """
[[policies.site.limits]]
name = "per-ip"
quota = "2 per 60s"
by = "ip"

[[policies.site.limits]]
name = "login"
quota = { free = "1 per 60s", pro = "9 per 60s" }
tier = "plan"
missing_tier = "free"
unknown_tier = "free"
by = "ip"
when = { path = "/login" }

[[policies.site.limits]]
name = "trial"
quota = "1 per 60s"
by = "account"
shadow = true
when = { account = { missing = false, not = "nobody" } }
"""
LINE = '{} - {} [25/Oct/2015:04:{:02}:{:02} +0000] "GET {} HTTP/1.1" {} 5 "-" "curl/8"\n'


def text_of(*requests: tuple[int, str, str, str, int]) -> str:
    """An access log of (second, address, user, path, status)."""
    return "".join(LINE.format(who, user, at // 60, at % 60, path, status) for at, who, user, path, status in requests)


LOG = text_of(
    (0, "192.0.2.1", "ann", "/login", 200),
    (1, "192.0.2.1", "ann", "/login", 429),
    (2, "192.0.2.1", "ann", "/", 200),
    (3, "192.0.2.1", "ann", "/", 200),
    (3, "192.0.2.2", "-", "/", 429),
    (120, "192.0.2.2", "-", "/", 200),
)
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``headway replay`` in a folder with a log and a policy file; the exit code, and what was printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "access.log").write_text(LOG)
    (tmp_path / "today.toml").write_text(TODAY)

    def runs(*words: str) -> tuple[int, str, str]:
        try:
            code = main(["replay", *words])
        except SystemExit as stop:
            code = int(str(stop.code))
        out, err = capsys.readouterr()
        return code, out, err

    return runs


POLICY = ("access.log", "--policy", "today.toml", "--map", "plan=-")


def test_a_whole_policy(run: Run) -> None:
    """Every limit of the file decides: conditions, tiers, shadow; the longest wait binds."""
    code, out, err = run(*POLICY, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [found[name] for name in ("partial", "lines", "unparsed", "policy", "source", "requests", "refused")] == [
        False, 6, 0, "site", "today.toml", 6, 2,
    ]  # fmt: skip
    assert (found["first"], found["last"]) == ("2015-10-25T04:00:00Z", "2015-10-25T04:02:00Z")
    limits = {limit["limit"]: limit for limit in found["limits"]}
    assert {name: (limit["asked"], limit["refused"], limit["bound"]) for name, limit in limits.items()} == {
        "per-ip": (6, 1, 1),
        "login": (2, 1, 1),
        "trial": (4, 3, 0),
    }
    assert limits["trial"]["shadow"]
    assert limits["login"]["most_refused"] == [
        {
            "key": {"ip": "192.0.2.1"},
            "requests": 2,
            "refused": 1,
            "first": "2015-10-25T04:00:01Z",
            "last": "2015-10-25T04:00:01Z",
            "longest_told_s": 59.0,
            "never": 0,
            "stretches": 1,
            "closed_s": 59.0,
            "longest_closed_s": 59.0,
        }
    ]
    assert found["statuses"] == {
        "codes": [429], "both": 1, "neither": 3, "only_log": 1, "only_policy": 1, "unknown": 0,
    }  # fmt: skip


def test_people_get_tables(run: Run) -> None:
    """The answer first, then the limits, the keys, and what really happened."""
    code, out, _ = run(*POLICY, "--obedient", "--series", "1m", "--behind", "user")
    assert code == 0
    assert out.startswith(
        "Replay of access.log\n\n6 requests from 2015-10-25 04:00:00 UTC to 2015-10-25 04:02:00 UTC.\n"
    )
    for said in (
        "'site' of today.toml refuses 2 (33.3 %).",
        "trial (shadow)",
        "By login",
        "different users",
        "Log and policy agree on 4 (66.7 %) of the requests.",
        "Callers that are refused come back exactly when they were told to",
        "requests in each 1 min: █ ▂",
        "2015-10-25 04:00:00 UTC",
    ):
        assert said in out


def test_two_policies_side_by_side(run: Run, tmp_path: Path) -> None:
    """What the proposed one newly refuses and newly admits, by limit and by key."""
    (tmp_path / "proposed.toml").write_text(
        TODAY.replace("2 per 60s", "1 per 60s").replace('1 per 60s", pro', '5 per 60s", pro')
    )
    code, out, _ = run(*POLICY, "--against", "proposed.toml", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["refused"], found["against"]["refused"], found["against"]["source"]) == (2, 3, "proposed.toml")
    compared = found["compared"]
    assert [compared[name] for name in ("both_admitted", "both_refused", "newly_refused", "newly_admitted")] == [
        3,
        2,
        1,
        0,
    ]
    assert compared["by_limit"] == [{"change": "newly_refused", "limit": "per-ip", "requests": 1}]
    assert compared["by_key"][0]["key"] == {"ip": "192.0.2.1"}
    code, out, _ = run(
        "access.log", "--limit", "9/s", "--by", "address", "--against", "proposed.toml", "--map", "plan=-", "--json"
    )
    assert (code, json.loads(out)["compared"]["newly_refused"], json.loads(out)["denied"]) == (0, 3, 0)


def test_one_limit_with_more_questions_says_the_same_and_more(run: Run) -> None:
    """What a bare --limit says is there with --series and --obedient too, missing values included."""
    for by in ("address", "user", "user_or_address", "everyone", "path,status"):
        bare = json.loads(run("access.log", "--limit", "1 per 60s", "--by", by, "--json")[1])
        more = json.loads(
            run("access.log", "--limit", "1 per 60s", "--by", by, "--series", "60s", "--obedient", "drop", "--json")[1]
        )
        assert bare.items() <= more.items()
        assert sum(row[1] for row in more["series"]["rows"]) == 6
        assert more["obedient"]["mode"] == "drop"
    assert more["series"]["columns"] == ["time", "requests", "refused", "refused_in_log"]


def test_every_format_and_several_logs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON, CSV, compressed and several logs, merged by time, from a pipe too; attributes are columns of the log."""
    rows = [
        {"time": f"2015-10-25T04:00:0{at}Z", "remote_addr": "192.0.2.1", "uri": "/login", "status": 200, "plan": plan}
        for at, plan in enumerate(["pro", "pro", "free"])
    ]
    (tmp_path / "json.log").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--policy", "today.toml", "--map", "plan=plan", "--map", "account=-", "--json")
    found = json.loads(run("json.log", *options)[1])
    assert {limit["limit"]: limit["refused"] for limit in found["limits"]} == {"per-ip": 1, "login": 1, "trial": 0}
    assert json.loads(run("json.log", "--limit", "1 per 60s", "--json")[1])["denied"] == 2
    half = len(LOG) - len(LOG.split("\n")[-2]) - 1
    (tmp_path / "late.log.gz").write_bytes(gzip.compress(LOG[half:].encode()))
    (tmp_path / "early.log").write_text(LOG[:half])
    whole = json.loads(run(*POLICY, "--json")[1])
    split = json.loads(run("late.log.gz", "early.log", *POLICY[1:], "--json")[1])
    assert split == whole
    with (tmp_path / "json.log").open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert json.loads(run("-", "--limit", "1 per 60s", "--json")[1])["denied"] == 2
    with (tmp_path / "access.log").open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert json.loads(run("-", *POLICY[1:], "--json")[1]) == whole


def test_a_limit_can_be_keyed_by_what_is_made_of_a_field(run: Run, tmp_path: Path) -> None:
    """Networks and routes need no policy file; IPv6 addresses of one /64 are one caller."""
    (tmp_path / "six.log").write_text(text_of(*((at, f"2001:db8::{at}", "-", f"/items/{at}", 200) for at in range(4))))
    found = {
        by: json.loads(run("six.log", "--limit", "1/min", "--by", by, "--json")[1])
        for by in ("network", "route", "path")
    }
    assert {by: (each["keys"], each["denied"]) for by, each in found.items()} == {
        "network": (1, 3),
        "route": (1, 3),
        "path": (4, 0),
    }


def test_requests_that_lack_an_attribute_are_counted_and_said(run: Run, tmp_path: Path) -> None:
    """What could not be decided live either is no request of the policy's."""
    (tmp_path / "users.toml").write_text('[[policies.p.limits]]\nname = "a"\nquota = "1 per 60s"\nby = "account"\n')
    code, out, _ = run("access.log", "--policy", "users.toml")
    assert code == 0
    assert "4 requests from" in out
    assert "could not decide 2 requests: their 'account' is missing" in out


def test_a_log_of_requests_that_all_lack_an_attribute_is_not_empty(run: Run, tmp_path: Path) -> None:
    """The report says what is missing, also where nothing at all could be decided."""
    (tmp_path / "plans.toml").write_text('[[policies.p.limits]]\nname = "a"\nquota = "1 per 60s"\nby = "plan"\n')
    code, out, err = run("access.log", "--policy", "plans.toml", "--map", "plan=-")
    assert (code, err) == (0, "")
    assert "could not decide 6 requests: their 'plan' is missing" in out


def test_every_member_of_the_json_is_documented(run: Run, tmp_path: Path) -> None:
    """The reference names each member that any of these replays gives."""
    page = (Path(__file__).parents[2] / "docs/reference/replay.md").read_text("utf-8")
    (tmp_path / "all.toml").write_text('[[policies.p.limits]]\nname = "a"\nquota = "1/h"\n')
    one = ("access.log", "--limit", "1 per 60s", "--behind", "user", "--json")
    options = ("--obedient", "--series", "1m", "--behind", "user", "--json")
    for words in (one, (*POLICY, "--against", "all.toml", *options), ("access.log", "--policy", "all.toml", *options)):
        assert [name for name in _members(json.loads(run(*words)[1])) if f"`{name}`" not in page] == []


def _members(value: object) -> set[str]:
    """The names of all members, but for those that are attributes."""
    if isinstance(value, list):
        return set().union(*map(_members, value))
    if not isinstance(value, dict):
        return set()
    inner = (_members(part) for name, part in value.items() if name not in ("key", "undecided"))
    return set(value).union(*inner)


def test_pictures_are_written(run: Run, tmp_path: Path) -> None:
    """--html writes a report page, --plot a picture."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    assert run(*POLICY, "--html", "report.html", "--plot", "over-time.svg")[0] == 0
    page = (tmp_path / "report.html").read_text()
    assert "per-ip" in page
    assert "<svg" in page
    assert (tmp_path / "over-time.svg").read_text().startswith("<")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("access.log",), 64, "--limit QUOTA or --policy FILE is needed"),
        (("access.log", "--policy", "today.toml", "--limit", "1/s"), 64, "expected one of them"),
        (("access.log", "--policy", "today.toml"), 64, "asks for the attribute 'plan'"),
        ((*POLICY, "--name", "sit"), 64, "no policy is named 'sit'; known: site"),
        ((*POLICY, "--by", "address"), 64, "--by belongs to --limit"),
        ((*POLICY, "--map", "ip"), 64, "--map 'ip': expected NAME=VALUE"),
        ((*POLICY, "--map", "plan=user"), 64, "--map names 'plan' twice"),
        ((*POLICY, "--series", "often"), 64, "--series 'often'"),
        ((*POLICY, "--refused-status", "42"), 64, "--refused-status names '42'"),
        ((*POLICY, "--caller", "ip"), 64, "--caller names 'ip'"),
        ((*POLICY, "--behind", "ip"), 64, "behind names 'ip'"),
        ((*POLICY, "--top", "-1"), 64, "top is -1"),
        ((*POLICY, "--match", "POST"), 64, "match is 'POST'"),
        ((*POLICY, "--format", "xml"), 64, "format is 'xml'"),
        ((*POLICY, "--obedient", "never"), 64, "invalid choice: 'never'"),
        (("access.log", "--limit", "3 at once", "--series", "1m"), 64, "does not say when a request ended"),
        (("access.log", "--limit", "1/s", "--name", "site"), 64, "--name belongs to --policy"),
        (("none.log", *POLICY[1:]), 66, "none.log: cannot be read: No such file"),
        (("access.log", "--policy", "none.toml"), 78, "no such file"),
        (("bad.toml", *POLICY[1:]), 65, "known format"),
        (("damaged.log.gz", *POLICY[1:]), 65, "cannot be read"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], code: int, said: str, run: Run, tmp_path: Path) -> None:
    """A mistake names the value, the place and what is accepted, prints no figures and has its exit code."""
    (tmp_path / "bad.toml").write_text("no = 'log'\n")
    (tmp_path / "damaged.log.gz").write_bytes(gzip.compress(LOG.encode() * 9)[:-12])
    status, out, err = run(*words)
    assert (status, out) == (code, "")
    assert said in err
    assert "Traceback" not in err


def test_several_policies_have_to_be_named(run: Run, tmp_path: Path) -> None:
    """A file of several policies says which there are."""
    (tmp_path / "two.toml").write_text(TODAY + '[[policies.other.limits]]\nname = "a"\nquota = "1/s"\n')
    code, _, err = run("access.log", "--policy", "two.toml")
    assert (code, "two.toml has 2 policies: site, other; say which with --name" in err) == (64, True)
    assert run("access.log", "--policy", "two.toml", "--name", "other")[0] == 0


@pytest.mark.parametrize("options", [("--limit", "1 per 60s"), ("--policy", "today.toml", "--map", "plan=-")])
@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_leaves_a_partial_report_that_says_so(options: tuple[str, ...], as_json: bool, tmp_path: Path) -> None:
    """While a pipe is read, Ctrl-C ends it: what was read is reported as partial, and the exit code is 130."""
    (tmp_path / "today.toml").write_text(TODAY)
    lines = text_of(*((at % 3600, f"192.0.2.{at % 7}", "-", "/", 200) for at in range(6000)))
    words = [sys.executable, "-m", "headway", "replay", "-", *options, *(["--json"] if as_json else [])]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None
    try:
        process.stdin.write(lines.encode())
        process.stdin.flush()
        assert _has_read(process)
        process.send_signal(signal.SIGINT)
        out, err = _heard(process)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, err
    assert b"this is not the whole log" in err
    if as_json:
        found = json.loads(out)
        assert found["partial"] is True
        assert 0 < found["requests"] <= 6000
        assert found["requests"] == found["lines"]
    else:
        assert b"not the whole" in out


def _heard(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What it says while its input stays open: the end must not come from there."""
    assert process.stdout is not None
    assert process.stderr is not None
    process.wait(PATIENCE_S)
    return process.stdout.read(), process.stderr.read()


def _has_read(process: subprocess.Popen[bytes]) -> bool:
    """Wait until the process has taken everything out of its pipe."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        if process.stdin is not None and _empty(process.stdin.fileno()):
            return True
        time.sleep(0.02)
    return False


def _empty(pipe: int) -> bool:
    import fcntl
    import termios

    held = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(held, sys.byteorder) == 0 and bool(select.select([], [pipe], [], 0)[1])
