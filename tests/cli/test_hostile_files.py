"""Files that a stranger wrote, given to every command that quotes them: nothing crashes, nothing steers a terminal."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from headway.cli import main
from headway.cli.safe import safe

EVIL = "\x1b]0;t\x07\x1b[31m\u202e\x9b31m\x7f'\"]\\"
LONE = "\ud800"


def _har(status: str, words: str) -> str:
    """A HAR file with one response, whose every text is ``words``."""
    said = json.dumps(words)
    fields = f'[{{"name":"Retry-After","value":{said}}},{{"name":"X-RateLimit-Limit","value":{said}}},{{"name":{said},"value":"1"}}]'
    request = f'{{"method":{said},"url":{said},"headers":[]}}'
    return f'{{"log":{{"entries":[{{"request":{request},"response":{{"status":{status},"headers":{fields},"content":{{"text":{said}}}}}}}]}}}}'


FILES: dict[str, tuple[list[str], str]] = {
    **{
        f"lint {form}": (["lint", "--format", form], _har("429", EVIL + LONE))
        for form in ("text", "json", "sarif", "junit")
    },
    "lint, a status without end": (["lint"], _har("1e999", "x")),
    "lint, JSON lines without end": (["lint"], '{"status":1e999,"headers":{},"body":""}'),
    "lint, nested": (["lint"], '{"log":{"entries":' + "[" * 100_000),
    "read": (["read"], _har("429", EVIL + LONE)),
    "read --json": (["read", "--json"], _har("429", EVIL + LONE)),
    "read, a status without end": (["read"], _har("1e999", "x")),
    "read, nested": (["read"], "[" * 100_000),
    "read, nested object": (["read"], '{"a":' * 100_000),
    "convert nginx": (["convert", "--from", "nginx"], f"http {{ {EVIL.replace(chr(39), '').replace(chr(34), '')} }}"),
    "convert envoy": (
        ["convert"],
        f"domain: {json.dumps(EVIL)}\ndescriptors:\n- key: {json.dumps(EVIL)}\n  rate_limit: {{unit: minute, requests_per_unit: 5}}\n",
    ),
    "convert, a tag that does not fit": (["convert", "--from", "envoy"], "domain: a\ndescriptors:\n- key: !!bool x\n"),
    "convert express": (
        ["convert", "--from", "express"],
        json.dumps({"windowMs": 1000, "max": 5, EVIL: EVIL, LONE: LONE}),
    ),
    "check-policy": (["check-policy"], f'store = "memory://"\n[policies.{json.dumps(EVIL)}]\nlimits = 5\n'),
}


@pytest.mark.parametrize("case", FILES)
def test_no_file_steers_a_terminal(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes, turned writing, half a character: whatever a command says of a file is printable, and has an encoding."""
    words, content = FILES[case]
    path = tmp_path / "given"
    path.write_bytes(content.encode())
    try:
        main([*words, str(path)])
    except SystemExit as stop:
        pytest.fail(f"ended with {stop.code}")
    for said in capsys.readouterr():
        assert all(char.isprintable() or char == "\n" for char in said)
        said.encode()


def test_a_converted_file_holds_any_text_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hostile value comes back from the policy file as it was, and never outside of its quotes."""
    evil = EVIL + "\n[policies.x]\n# é中\ue000\ufeff"
    path = tmp_path / "given.yaml"
    path.write_text(
        f"domain: a\ndescriptors:\n- key: k\n  value: {json.dumps(evil)}\n  rate_limit: {{unit: minute, requests_per_unit: 5}}\n"
    )
    assert main(["convert", str(path)]) == 0
    found = tomllib.loads(capsys.readouterr().out)
    assert len(found["policies"]) == 1
    assert evil in json.dumps(found, ensure_ascii=False) or evil in _texts(found)


def _texts(value: object) -> list[str]:
    """Every text within a value."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for inner in value.values() for text in _texts(inner)]
        case list():
            return [text for inner in value for text in _texts(inner)]
    return []


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e", "\ud800", "\r", "\t"])
def test_what_is_not_printable_comes_as_an_escape(char: str) -> None:
    """Each of them is shown for what it is; letters of all scripts and ends of lines stay."""
    assert safe(f"é中\n{char}x").startswith("é中\n\\")
