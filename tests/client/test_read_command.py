"""`headway read`: what it prints and how it ends."""

import argparse
import io
import json
from pathlib import Path

import pytest
from tests.client.corpus import cases

from headway.cli import read as command

DATA = Path(__file__).parent / "data"
CURL = "HTTP/1.1 429 Slow\r\nDate: Sat, 01 Aug 2026 00:00:00 GMT\r\nRetry-After: 90\r\nX-RateLimit-Reset: zz\r\n\r\n"


def run(*arguments: str) -> int:
    """Run the command as the program would."""
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["read", *arguments])
    code = args.run(args)
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("name", ["rejections", "header_edges"])
def test_json_lines_in_and_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a response, with its id and every value of the right reading."""
    assert run("--jsonl", "--json", str(DATA / f"{name}.jsonl")) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for case, one in zip(cases(name), printed, strict=True):
        assert one["id"] == case.id
        for key in ("kind", "retry_after_s", "limit", "remaining", "reset_at", "limit_name"):
            assert one[key] == case.expected[key]
        assert one["sentence"].endswith(".")


def test_text_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --json a response is a few lines: kind, sentence, wait with its source, and what was ignored."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CURL.encode())))
    assert run() == 0
    out = capsys.readouterr().out
    assert out.startswith("429 rate_limited\n")
    assert "90 s (from retry-after)" in out
    assert "ignored    X-RateLimit-Reset" in out


def test_a_response_that_is_no_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ordinary response is said to be no refusal, and has a null kind in JSON."""
    file = tmp_path / "ok.txt"
    file.write_text("HTTP/1.1 200 OK\r\n\r\nfine")
    assert run(str(file)) == 0
    assert capsys.readouterr().out == "200 is no refusal.\n"
    assert run("--json", str(file)) == 0
    assert json.loads(capsys.readouterr().out)["kind"] is None


def test_zone_and_arrival_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--zone says whose tomorrow it is, --received-at when the response came."""
    file = tmp_path / "curl.txt"
    file.write_text("HTTP/1.1 429 Slow\r\n\r\nTry again tomorrow")
    assert run("--json", "--zone", "Asia/Tokyo", "--received-at", "2026-08-01T00:00:00", str(file)) == 0
    assert json.loads(capsys.readouterr().out)["retry_after_s"] == 15 * 3600


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("no-such-file",), 66, "no-such-file: cannot be read: No such file"),
        ((".",), 66, ".: cannot be read: Is a directory"),
        (("--zone", "Nowhere/City", "x"), 64, "--zone"),
        (("--received-at", "noon", "x"), 64, "--received-at"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad argument ends with 64, a file that cannot be read with 66, each with one line on standard error."""
    assert run(*arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert says in captured.err


def test_a_capture_without_end_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is larger than a capture can be is not read into memory, and ends with 65."""
    for module in ("read", "captured"):
        monkeypatch.setattr(f"headway.cli.{module}.LARGEST", 100)
    file = tmp_path / "large.txt"
    file.write_text("HTTP/1.1 429 Slow\r\n\r\n" + "x" * 100)
    assert run(str(file)) == 65
    assert "large.txt: holds more than" in capsys.readouterr().err


def test_garbage_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text that is no capture ends with 65 and names the file."""
    file = tmp_path / "garbage.txt"
    file.write_bytes(b"\xff\xfe garbage")
    assert run(str(file)) == 65
    assert "garbage.txt" in capsys.readouterr().err
