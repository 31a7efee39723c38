"""``headway check``: one decision from a shell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from headway.cli import main

POLICIES = """
store = "sqlite:///state.db"
[[policies.codes.limits]]
name = "resend"
quota = "1 per 60s"
by = "phone"
[[policies.tokens.limits]]
name = "tokens"
quota = "100 per hour"
by = ["account"]
[[policies.banned.limits]]
name = "ban"
quota = "0/day"
[policies.open]
limits = []
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A policy file in a folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    path = tmp_path / "limits.toml"
    path.write_text(POLICIES)
    return str(path)


def check(*words: str) -> int:
    """``headway check`` with these words; usage errors as their code."""
    try:
        return main(["check", *words])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


def test_the_exit_code_is_the_decision(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """0 allowed, 75 refused, 65 never, 77 blocked; the sentence is on standard error and nothing else is said."""
    for words, code, says in [
        (("codes", "phone=1"), 0, ""),
        (("codes", "phone=1"), 75, "Too many requests for this phone. Try again in "),
        (("codes", "phone=2", "--cost", "2"), 65, "2 at once"),
        (("banned",), 77, ""),
    ]:
        assert check(*words, "--policy-file", file) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert says in err
        assert len(err.splitlines()) == 1


def test_json_is_the_whole_decision(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One object on standard output; the sentence is in it and on standard error."""
    assert check("codes", "phone=1", "--policy-file", file, "--json") == 0
    out, err = capsys.readouterr()
    decision = json.loads(out)
    assert decision["allowed"] is True
    assert (decision["limit"], decision["remaining"], decision["retry_after"]) == ("resend", 0, 0.0)
    assert decision["sentence"] == err.rstrip("\n")
    assert check("codes", "phone=1", "--policy-file", file, "--json") == 75
    refused = json.loads(capsys.readouterr().out)
    assert refused["allowed"] is refused["never"] is False
    assert 0 < refused["retry_after"] <= 60
    assert refused["retry_after_ms"] >= refused["retry_after"] * 1000
    assert refused["retry_at"].endswith("+00:00")
    assert refused["outcomes"]["resend"]["outcome"] == "refused"
    assert check("tokens", "account=a", "--cost", "101", "--policy-file", file, "--json") == 65
    never = json.loads(capsys.readouterr().out)
    assert (never["never"], never["retry_after"], never["retry_after_ms"], never["retry_at"]) == (
        True,
        None,
        None,
        None,
    )


def test_options_may_stand_anywhere(file: str) -> None:
    """Before, between and after the attributes, the words mean the same."""
    for words in (
        ("tokens", "account=a", "--cost", "40", "--policy-file", file),
        ("--cost", "40", "--policy-file", file, "tokens", "account=a"),
        ("tokens", "--cost", "40", "account=a", "--policy-file", file),
    ):
        code = check(*words)
    assert code == 75


def test_a_value_may_hold_anything(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first = parts name and value; quotes, more = and nothing at all are values too."""
    for value in ("a=b", "", "x'); DROP TABLE hits; --", "-1", "日本"):
        assert check("codes", f"phone={value}", "--policy-file", file) == 0
        assert check("codes", f"phone={value}", "--policy-file", file) == 75


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nope", "phone=1"), "no policy is named 'nope'; known: codes, tokens, banned, open"),
        (("codes",), "keyed by 'phone'"),
        (("codes", "phone"), "'phone' is no attribute; expected NAME=VALUE"),
        (("codes", "=1"), "'=1' is no attribute"),
        (("codes", "phone=1", "phone=2"), "'phone' is given twice"),
        (("codes", "phone=1", "--cost", "-1"), "--cost"),
        (("codes", "phone=1", "--cost", "1.5"), "'1.5' is no cost; expected a whole number from 0"),
        (("codes", "phone=1", "--costs", "1"), "unrecognized arguments: --costs"),
        ((), "POLICY"),
    ],
)
def test_wrong_words_are_64(file: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    """Nothing is charged, and the message says what was expected."""
    assert check(*words, "--policy-file", file) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert check("codes", "phone=1", "--policy-file", file) == 0


def test_a_bad_file_is_78(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All problems of the file are said, and nothing is decided."""
    Path(file).write_text(POLICIES.replace("1 per 60s", "1 per 60").replace('by = ["account"]', "by = 3"))
    assert check("codes", "phone=1", "--policy-file", file) == 78
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_store_that_cannot_decide_is_69(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it cannot be opened or does not answer."""
    (tmp_path / "state.db").mkdir()
    assert check("codes", "phone=1", "--policy-file", file) == 69
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("choice", "code", "sentence"),
    [
        ("deny", 69, "This request can't be checked"),
        ("local", 0, "This request is allowed"),
        ("allow", 0, "This request is"),
    ],
)
def test_what_decided_without_the_store_is_not_kept_back(
    choice: str, code: int, sentence: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Why the store did not decide is said beside the sentence, in one line, whatever ``on_store_failure`` made of it."""
    store = POLICIES.replace("sqlite:///state.db", "redis://127.0.0.1:1/0")
    Path(file).write_text(store.replace('by = "phone"', f'by = "phone"\non_store_failure = "{choice}"'))
    assert check("codes", "phone=1", "--policy-file", file) == code
    reason, said = capsys.readouterr().err.splitlines()
    assert reason == "headway check: the store did not decide: Redis store 127.0.0.1:1: Connection refused"
    assert said.startswith(sentence)


def test_without_a_file_the_built_in_policy_decides(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its state is in the user's folder, where ``headway serve`` keeps it, and outlives the process."""
    words = ("one-time-codes", "phone=+447700900123", "ip=203.0.113.7")
    assert [check(*words) for _ in range(2)] == [0, 75]
    assert (tmp_path / "state" / "headway" / "limits.db").exists()
    shutil.rmtree(tmp_path / "state")
    assert check(*words) == 0


def test_a_decision_in_memory_is_warned_of(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A memory store forgets when the command ends, which is hardly what is meant."""
    Path(file).write_text(POLICIES.replace("sqlite:///state.db", "memory://"))
    assert [check("codes", "phone=1", "--policy-file", file) for _ in range(2)] == [0, 0]
    assert "forgotten at once" in capsys.readouterr().err


def test_a_policy_without_limits_is_warned_of(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It admits everything, which is said whenever it decides; other policies of the file are not disturbed."""
    assert check("open", "--policy-file", file) == 0
    assert "policy 'open' has no limits" in capsys.readouterr().err
