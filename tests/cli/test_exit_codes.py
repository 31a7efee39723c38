"""One exit code for one thing, whichever command says it: nothing to report on, an extra, a file that is not there or cannot be written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli import main

READERS = {
    "replay": ("replay", "{log}", "--limit", "1/s"),
    "replay, all formats": ("replay", "{log}", "--limit", "1/s", "--by", "host"),
    "replay, JSON": ("replay", "{log}", "--limit", "1/s", "--json"),
    "compare": ("compare", "--log", "{log}"),
    "suggest": ("suggest", "{log}"),
    "lint": ("lint", "{log}"),
    "read": ("read", "{log}"),
    "convert": ("convert", "{log}"),
}
"""Commands that read a file, and what they are called with."""

LINE = '192.0.2.1 - - [25/Oct/2015:04:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
WITHOUT = """
import sys
for name in ("brotli", "backports.zstd", "compression.zstd", "crawleruseragents", "duckdb", "matplotlib", "numpy", "psycopg",
             "starlette", "uvicorn", "yaml"):
    sys.modules[name] = None
from headway.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""``headway`` where no extra is installed."""


def words(command: tuple[str, ...], log: Path) -> list[str]:
    return [word.format(log=log) for word in command]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", gzip.compress(b"")], ids=["empty", "BOM", "gzip"])
@pytest.mark.parametrize("reader", READERS)
def test_an_empty_file_is_65_and_no_report(
    reader: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without anything in it is no sound answer: a line says so, and no report of zeros is printed."""
    log = tmp_path / "log"
    log.write_bytes(content)
    assert main(words(READERS[reader], log)) == 65
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{log}:" in err
    if not content.startswith(b"\x1f"):
        assert "is empty; expected " in err


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_not_there_is_66(reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file and a folder in its place are named, with what the system says of them."""
    for place, said in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        assert main(words(READERS[reader], place)) == 66
        assert f"{place}: cannot be read: {said}\n" in capsys.readouterr().err


@pytest.mark.parametrize("reader", ["replay", "replay, all formats", "suggest"])
def test_a_match_that_nothing_matches_is_65(reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error in --match must not look like a limit that refuses nobody."""
    log = tmp_path / "log"
    log.write_text(LINE)
    assert main([*words(READERS[reader], log), "--match", "POST /a"]) == 65
    assert capsys.readouterr() == (
        "",
        f"headway {READERS[reader][0]}: {log}: no request that 'POST /a' matches in 1 line\n",
    )


def test_a_capture_without_a_response_is_65(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A HAR file of no entries audits nothing: not a sound answer either."""
    har = tmp_path / "a.har"
    har.write_text(json.dumps({"log": {"entries": []}}))
    for command in ("read", "lint"):
        assert main([command, str(har)]) == 65
        assert capsys.readouterr().err == f"headway {command}: {har}: holds no response\n"


@pytest.mark.parametrize(
    ("given", "extra"),
    [
        (("replay", "a.parquet", "--limit", "1/s"), "analysis"),
        (("replay", "a.log", "--limit", "1/s", "--html", "a.html"), "analysis"),
        (("compare", "--log", "a.zst"), "analysis"),
        (("compare", "--plot", "a.png"), "analysis"),
        (("suggest", "a.log"), "analysis"),
        (("lint", "a.zst"), "analysis"),
        (("lint", "a.yaml"), "yaml"),
        (("convert", "b.yaml"), "yaml"),
        (("convert", "5/minute", "--store", "postgresql://h/d"), "postgres"),
        (("check", "p", "--policy-file", "a.toml"), "postgres"),
        (("check-policy", "a.toml"), "postgres"),
        (("store", "inspect", "postgresql://h/d"), "postgres"),
        (("run", "--quota", "1/s", "--shared", "postgresql://h/d", "--", "true"), "postgres"),
        (("serve",), "serve"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else given,
)
def test_a_missing_extra_is_69_and_named(given: tuple[str, ...], extra: str, tmp_path: Path) -> None:
    """Whatever needs an extra says in one line how to install it."""
    (tmp_path / "a.log").write_text(LINE)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (tmp_path / "a.yaml").write_text("openapi: 3.0.0\n")
    (tmp_path / "b.yaml").write_text("domain: d\ndescriptors: []\n")
    (tmp_path / "a.toml").write_text('store = "postgresql://h/d"\n[[policies.p.limits]]\nname = "n"\nquota = "1/s"\n')
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, *given], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout) == (69, "")
    assert run.stderr.endswith(f" pip install 'headway[{extra}]'\n")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "given",
    [
        ("replay", "{log}", "--limit", "1/s", "--html"),
        ("compare", "--plot"),
        ("suggest", "{log}", "--toml"),
        ("convert", "5/minute", "--output"),
    ],
    ids=lambda given: given[0],
)
def test_a_file_that_cannot_be_written_is_73(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is not there, and a folder in the file's place: found out before the work, and said with the option."""
    log = tmp_path / "log"
    log.write_text(LINE)
    (tmp_path / "a.png").mkdir()
    for place in (tmp_path / "none" / "a.png", tmp_path / "a.png"):
        assert main([*words(given, log), str(place)]) == 73
        assert f"headway {given[0]}: {given[-1]} {place}: " in capsys.readouterr().err


def test_a_report_is_printed_although_its_picture_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was found is not lost with a disk that takes no picture."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    log = tmp_path / "log"
    log.write_text(LINE)
    monkeypatch.setattr(Path, "write_bytes", full)
    place = tmp_path / "a.svg"
    assert main(["replay", str(log), "--limit", "1/s", "--plot", str(place)]) == 73
    out, err = capsys.readouterr()
    assert "1 request from 2015" in out
    assert err == f"headway replay: --plot {place}: cannot be written: No space left on device\n"
