"""``headway explain --policy-file``: what a request of a policy would meet, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.cli import main

POLICIES = """
store = "sqlite:///state.db"
[policies.api]
exempt = [{ ip = "10.0.0.0/8" }]
ban = [{ ip = "203.0.113.0/24" }]
[[policies.api.limits]]
name = "per-account"
quota = { free = "2/min", pro = "600/min" }
tier = "plan"
unknown_tier = "free"
by = "account"
overrides = { acme = "1000/min", eve = "block" }
[[policies.api.limits]]
name = "writes"
quota = "1/min"
by = "account"
when = { method = "POST" }
shadow = true
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "limits.toml").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(*words: str) -> int:
    return main(["explain", "api", *words, "--policy-file", "limits.toml"])


REQUEST = ("ip=192.0.2.1", "method=GET", "plan=free")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("account=a", *REQUEST),
            ["would be admitted, 1 left by per-account", "per-account (2/minute, gcra) for account='a'"],
        ),
        (("account=a", "ip=192.0.2.1", "method=GET", "plan=gold"), ["per-account (2/minute, gcra)"]),
        (
            ("account=acme", *REQUEST),
            ["per-account (1000/minute, gcra)", "banned does not apply to this request: blocks 1 entry by ip"],
        ),
        (("account=eve", *REQUEST), ["would be refused by per-account", "it blocks everything"]),
        (
            ("account=a", "ip=203.0.113.9", "method=GET", "plan=pro"),
            ["would be refused by banned", "would admit 1 unit"],
        ),
        (("account=a", "ip=::ffff:10.1.2.3"), ["exempt: passes unlimited and uncounted"]),
        (
            ("account=a", "ip=192.0.2.1", "method=POST", "plan=pro"),
            ["writes (1/minute, gcra) for account='a' [shadow: not enforced]"],
        ),
        (("account=a", *REQUEST), ["writes does not apply to this request: when method is POST"]),
        (("account=a", *REQUEST, "--cost", "9"), ["would be refused by per-account", "at most 2 fit at once"]),
    ],
)
def test_each_limit_says_what_it_would_answer_and_why(
    folder: Path, words: tuple[str, ...], says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tiers, overrides, bans, exemptions, conditions and shadows, in words; asked twice, for nothing is charged."""
    for _ in range(2):
        assert explain(*words) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert all(part in out for part in says), out


def test_json_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object, with the keys that are documented."""
    assert explain("account=a", "ip=192.0.2.1", "method=POST", "plan=pro", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["allowed"], found["exempt"], found["limit"]) == (True, False, "per-account")
    assert [(limit["limit"], limit["shadow"]) for limit in found["limits"]] == [
        ("per-account", False),
        ("writes", True),
    ]
    assert found["limits"][0].keys() == {"limit", "quota", "algorithm", "key", "state", "answer", "ready_at", "shadow"}
    assert found["others"] == {"banned": "blocks 1 entry by ip"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["apo", "account=a", "--policy-file", "limits.toml"], 64, "no policy is named 'apo'"),
        (["api", "account", "--policy-file", "limits.toml"], 64, "'account' is no attribute; expected NAME=VALUE"),
        (["api", "account=a", "account=b", "--policy-file", "limits.toml"], 64, "'account' is given twice"),
        (["api", "account=a", "--policy-file", "limits.toml"], 64, "depends on 'ip'"),
        (["api", "account=a", "--policy-file", "none.toml"], 78, "none.toml: no such file"),
        (["5/s", "--cost", "3"], 64, "--cost is of a request; expected --policy-file"),
        (["api", "account=a"], 64, "a request of a policy takes --policy-file FILE"),
    ],
)
def test_what_cannot_be_explained_is_one_line(
    folder: Path, words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exit codes of ``headway check``."""
    assert main(["explain", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
