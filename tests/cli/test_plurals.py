"""One of a thing is said as one, whichever command counts it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.cli import main

LINE = '192.0.2.1 - - [25/Oct/2015:04:00:00 +0000] "GET /a HTTP/1.1" {status} 5 "-" "curl/8"\n'
REFUSAL = "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n\r\n"
POLICY = '[[policies.p.limits]]\nname = "n"\nquota = "1/s"\nby = "account"\n'
COMMANDS = (
    "replay one --limit 1/s",
    "replay two --limit 1/s --by host --obedient --behind agent",
    "replay one --policy policy --map account=user",
    "compare --log one --limit 1/s",
    "compare --log bad --limit 1/s",
    "compare --pattern steady --length 1 --limit 1/s",
    "suggest one",
    "suggest bad",
    "lint one",
    "lint bad",
    "lint refusal",
    "read refusal",
    "convert nothing --from limits --strict",
    "explain 1/s",
    "replay junk --limit 1/s",
    "suggest junk",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_one_is_not_said_as_many(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No output says "1 lines" or "1 requests"."""
    monkeypatch.chdir(tmp_path)
    files = {"one": LINE.format(status=429), "junk": "junk\n", "refusal": REFUSAL, "policy": POLICY, "nothing": "0/day"}
    files |= {"two": files["one"] * 2, "bad": files["one"] + "junk\n"}
    for name, text in files.items():
        Path(name).write_text(text)
    main(command.split())
    out, err = capsys.readouterr()
    assert out + err
    assert not re.findall(r"(?<![\w,.:/=])1 (?:more )?(?!s\b|ms\b|is\b|was\b|has\b)[A-Za-z]+s\b.*", out + err)
