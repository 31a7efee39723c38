"""``headway check-policy``: everything that is wrong with a policy file, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli import main
from headway.policy.builtin import BUILTIN_TEXT


def write(folder: Path, text: str) -> str:
    """A policy file with this text."""
    path = folder / "limits.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_good_file_is_told_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0, the store and each policy with its limits; nothing is opened or created."""
    path = write(tmp_path, BUILTIN_TEXT)
    assert main(["check-policy", path]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"{path}: ok; the store is sqlite:///limits.db",
        "  one-time-codes: resend 1/minute by phone, per-phone 5/day by phone, per-ip 20/hour by ip, everyone 1000/day",
    ]
    assert err == ""
    assert [each.name for each in tmp_path.iterdir()] == ["limits.toml"]


def test_no_condition_hides_a_quota_and_no_limit_how_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with its quota, its key and, where it is not the usual, its algorithm; a shadow is said to be one."""
    limits = {
        "writes": 'quota = "10/min"\nby = "account"\nshadow = true\nwhen = { method = "POST" }',
        "own": 'quota = "5/min"\nby = "account"\noverrides = { acme = "9/min" }',
        "tiers": 'quota = { free = "1/s", pro = "block" }\nby = "account"\ntier = "plan"\nunknown_tier = "free"',
        "never": 'block = true\nwhen = { country = "xx" }',
        "logins": 'quota = "1 per 30 s burst 3"\nby = "account"\nalgorithm = "growing-wait"',
        "hours": 'quota = "100/hour"\nalgorithm = "fixed-window"\ncount_refused = true',
        "days": 'quota = "5/day in UTC"',
        "slots": 'quota = "3 at once"',
    }
    tables = "\n".join(f'[[policies.a.limits]]\nname = "{name}"\n{rest}' for name, rest in limits.items())
    assert main(["check-policy", write(tmp_path, tables)]) == 0
    shown = capsys.readouterr().out.splitlines()[1].removeprefix("  a: ")
    assert shown.split(", ", 2) == [
        "writes 10/minute by account [shadow] (when method is POST)",
        "own 5/minute by account (1 account with a quota of their own)",
        "tiers by account (free 1/s, pro block by plan (unknown: free, missing: error)), "
        "never block (when country is xx), "
        "logins 1 per 30 seconds burst 3 by account [growing-wait], "
        "hours 100/hour [fixed-window, count_refused], days 5/day in UTC, slots 3 at once for 1 minute",
    ]


def test_every_problem_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """78, and file:line: key: problem for each, the store's URL among them."""
    path = write(tmp_path, 'store = "sqlite://limits.db"\n[[policies.a.limits]]\nname = "A"\nqouta = "5/day"\n')
    assert main(["check-policy", path]) == 78
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{path}:1", "store"],
        [f"{path}:3", "policies.a.limits[0].name"],
        [f"{path}:4", "policies.a.limits[0].qouta"],
    ]
    assert lines[1].endswith("did you mean 'a'?")
    assert lines[2].endswith("did you mean 'quota'?")


def test_a_warning_is_no_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy that limits nothing loads with 0 and says so, with its place."""
    path = write(tmp_path, "[policies.a]\nlimits = []\n")
    assert main(["check-policy", path]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("  a: nothing is limited\n")
    assert err.startswith(f"headway check-policy: warning: {path}:2: policies.a.limits: ")


def test_a_file_that_is_not_there_is_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with its name."""
    assert main(["check-policy", str(tmp_path / "none.toml")]) == 78
    assert capsys.readouterr().err == f"{tmp_path}/none.toml: no such file; expected a policy file in TOML\n"


@pytest.mark.parametrize(
    ("store", "workers", "warned"),
    [("memory://", "3", True), ("memory://", "1", False), ("sqlite:///l.db", "3", False)],
)
def test_limits_that_workers_multiply_are_not_ok_unsaid(
    store: str,
    workers: str,
    warned: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FS-31: a memory store where more than one worker is known of is one warning with the factor; the file is still good."""
    monkeypatch.setenv("WEB_CONCURRENCY", workers)
    path = write(tmp_path, f'store = "{store}"\n[[policies.a.limits]]\nname = "a"\nquota = "2/minute"\n')
    assert main(["check-policy", path]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == warned
    assert ("up to 3 times each limit" in err) == warned
