"""``headway convert`` as somebody runs it: files, pipes, --strict, mistakes; what it writes is a policy file."""

from __future__ import annotations

import io
import sys
import tomllib
from pathlib import Path

import pytest

from headway.cli import main

SOURCES = {
    "envoy": "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, requests_per_unit: 3}\n",
    "nginx": "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;\nlimit_req_status 429;\nserver { limit_req zone=one; }\n",
    "limits": "10 per minute\n",
    "express": '{"windowMs": 60000, "limit": 3}\n',
}


def run(*words: str) -> int:
    """One command line in this process; wrong usage ends in its exit status too."""
    try:
        return main(list(words))
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A file that can be converted, with two things that are not exact."""
    path = tmp_path / "given.yaml"
    path.write_text(f"{SOURCES['envoy']}  detailed_metric: true\n  metadata: {{a: b}}\n")
    return path


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_printed_is_a_policy_file(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each source is told by its content; check-policy takes what comes out; what is exact passes --strict in silence."""
    path = tmp_path / "given"
    path.write_text(SOURCES[source])
    assert run("convert", str(path), "--strict", "--store", "sqlite:///limits.db") == 0
    out, err = capsys.readouterr()
    assert err == ""
    made = tmp_path / "limits.toml"
    made.write_text(out)
    assert run("check-policy", str(made)) == 0
    assert "sqlite:///limits.db" in capsys.readouterr().out


def test_notes_are_said_with_their_line(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not exact stands on standard error, a line each with file and line, and in the file as comments."""
    assert run("convert", str(given)) == 0
    out, err = capsys.readouterr()
    assert [line.partition(": not exact")[0] for line in err.splitlines()] == [
        f"headway convert: {given}:5: k",
        f"headway convert: {given}:6: k",
    ]
    assert out.count("# NOT EXACT (line ") == 2


def test_strict_writes_nothing(given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--strict fails with 1 where something is not exact, after saying what, and leaves no file."""
    made = tmp_path / "made.toml"
    assert run("convert", str(given), "--strict", "-o", str(made)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "2 things cannot be carried over exactly" in err
    assert not made.exists()


def test_names_and_output(given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--policy names the policy, --output the file."""
    made = tmp_path / "made.toml"
    assert run("convert", str(given), "--policy", "edge", "-o", str(made)) == 0
    assert "[[policies.edge.limits]]" in made.read_text()
    assert capsys.readouterr().out == ""


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe is read as a file is; --from says what it is."""

    class Piped:
        buffer = io.BytesIO(b"5/2 seconds")

    monkeypatch.setattr(sys, "stdin", Piped)
    assert run("convert", "-", "--from", "limits") == 0
    assert 'quota = "5 per 2 s"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words", "status", "said"),
    [
        (b"", [], 65, "is empty"),
        (b"hello", [], 65, "no configuration that is known"),
        (b"\xff\n", [], 65, ":1: is not UTF-8"),
        (b"a\n\xff\n", [], 65, ":2: is not UTF-8"),
        (b"domain: d\ndescriptors:\n- key: 3\n", [], 65, ":3: key is 3"),
        (b"10 per minute", ["--policy", "No Good"], 65, "policy name 'No Good'"),
        (b"10 per minute", ["--from", "kong"], 64, "kong"),
        (b'[{"windowMs": 1, "limit": 1}, {"windowMs": 1, "limit": 2}]', ["--policy", "x"], 65, "2 policies"),
        (b"10 per minute", ["-o", "no/such/folder/x.toml"], 73, "cannot be written"),
    ],
)
def test_mistakes_are_one_line(
    content: bytes, words: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be converted is one clear error with the file, and its line where there is one."""
    path = tmp_path / "given"
    path.write_bytes(content)
    assert run("convert", str(path), *words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_strings_of_limits_as_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    """Limits can be given as they are, without a file."""
    assert run("convert", "10 per minute; 100/hour") == 0
    assert [limit["quota"] for limit in tomllib.loads(capsys.readouterr().out)["policies"]["limits"]["limits"]] == [
        "10/min",
        "100/hour",
    ]


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is 66."""
    assert run("convert", "gone.conf") == 66
    assert "gone.conf" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["convert", "lint"])
def test_a_missing_extra_is_named(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without PyYAML, what needs it says in one line which extra to install; the rest works."""
    for name in ("headway.analysis.yaml", "headway.analysis.lint.openapi", "headway.analysis.convert.envoy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = tmp_path / "given"
    path.write_text(SOURCES["envoy"] if command == "convert" else "openapi: 3.1.0\npaths: {}\n")
    assert run(command, str(path)) == 69
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "pip install 'headway[yaml]'" in err
    path.write_text(SOURCES["limits"])
    assert run("convert", str(path)) == 0


def test_a_store_that_cannot_be_is_refused(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--store takes what a policy file takes."""
    assert run("convert", str(given), "--store", "sqlite://x.db") == 64
    assert "three slashes" in capsys.readouterr().err


def test_nothing_of_the_source_leaves_its_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names with line ends and quotes stay within comments and strings: what is written holds one policy and no more."""
    path = tmp_path / "given"
    evil = 'x\\n[policies.evil]\\n\\u2028limits = [] \\" '
    path.write_text(
        f'domain: "{evil}"\ndescriptors:\n- key: "{evil}"\n  value: "{evil}"\n  rate_limit: {{unit: day, requests_per_unit: 1}}\n'
    )
    assert run("convert", str(path)) == 0
    out, err = capsys.readouterr()
    assert list(tomllib.loads(out)["policies"]) == ["x-policies.evil-limits"]
    assert all(line.isprintable() for line in err.splitlines())
