"""Every code block of every page does what the page says; CONTRIBUTING, "Documents and changes", says how.

One page is one reader: its blocks run in order, in a folder of their own, in one namespace, without a network. A service
that the page starts, or that its requests need, listens on a free port instead of the one shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway import Limiter

PORT = "8440"
PATIENCE_S = 60
EXIT_CODES = {0, 1, 64, 65, 66, 69, 75, 77, 78}
NOT_RUN = ("pip install ", "uv run ", "python3 -m venv ", "uv add ")
"""What sets a machine up; .ci/run does these for real."""


def test_blocks(page_with_blocks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of the page runs, and what the page shows of its output is what comes out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    _cut_the_network(monkeypatch)
    with contextlib.closing(Reader(page_with_blocks, tmp_path)) as reader:
        for block in page_with_blocks.blocks:
            reader.read(block)


class Reader:
    """Somebody who does what a page says, from its first block to its last."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": "page"}
        self.printed: str | None = None
        self.answered: str | None = None
        self.status = 0
        self.service: Service | None = None

    def read(self, block: Any) -> None:
        """Do what a block is for."""
        act = getattr(self, f"_{block.language}", None)
        place = f"{self.page.name}:{block.line}"
        assert act, f"{place}: nothing checks a {block.language or 'nameless'!r} block; see CONTRIBUTING"
        act(block, place)

    def close(self) -> None:
        """End what the page has started, as the end of its reader's interpreter would."""
        for left in self.namespace.values():
            if isinstance(left, Limiter):
                left.close()
        if self.service:
            self.service.stop()

    def _python(self, block: Any, place: str) -> None:
        code = compile("\n" * (block.line - 1) + block.text, str(self.page.path), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.namespace)
        self.printed = out.getvalue()

    def _output(self, block: Any, place: str) -> None:
        assert self.printed is not None, f"{place}: nothing printed this"
        _same(self.printed, block.text, place)
        self.printed = None

    def _toml(self, block: Any, place: str) -> None:
        tomllib.loads(block.text)
        named = re.match(r"# ([\w-]+\.toml)\n", block.text)
        if named:
            (self.folder / named[1]).write_text(block.text, "utf-8")

    def _json(self, block: Any, place: str) -> None:
        if "…" not in block.text:
            json.loads(block.text)

    def _text(self, block: Any, place: str) -> None:
        pass

    def _http(self, block: Any, place: str) -> None:
        if self.answered is not None:
            _same_answer(self.answered, block.text, place)
            self.answered = None

    def _console(self, block: Any, place: str) -> None:
        for command, shown in _commands(block.text):
            self._command(command, shown, f"{place}: $ {command}")

    def _command(self, command: str, shown: str, place: str) -> None:
        if command.startswith(NOT_RUN):
            return
        if command == "echo $?":
            _same(f"{self.status}\n", shown, place)
            return
        words = shlex.split(command)
        if words[:2] == ["headway", "serve"]:
            assert not self.service, f"{place}: this page runs a service already"
            self.service = Service(words, self.folder)
            self.service.wait()
            self.service.expect(shown, place)
        elif words[0] == "curl":
            self.answered = self._asked(words[1:])
            if shown:
                _same(self.answered, shown, place)
        else:
            assert words[0] == "headway", f"{place}: nothing runs this"
            ran = subprocess.run(
                ["bash", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE_S,
            )
            self.status = ran.returncode
            assert "Traceback" not in ran.stdout, f"{place}\n{ran.stdout}"
            assert ran.returncode in EXIT_CODES, f"{place}: exit {ran.returncode}\n{ran.stdout}"
            if shown:
                _same(ran.stdout, shown, place)

    def _asked(self, words: list[str]) -> str:
        if not self.service:
            self.service = Service(["headway", "serve"], self.folder)
            self.service.wait()
        return self.service.masked(_curl([word.replace(f":{PORT}", f":{self.service.port}") for word in words]))


class Service:
    """``headway serve`` as a page starts it, on a free port.

    Args:
        words: the command.
        folder: where it runs.
    """

    def __init__(self, words: list[str], folder: Path) -> None:
        shown = [words[at + 1] for at, word in enumerate(words) if word == "--port"]
        self.shown_port = shown[0] if shown else PORT
        self.said = ""
        self.process = subprocess.Popen(
            [*words, "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.port = ""

    def wait(self) -> None:
        """Wait until it says where it listens."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", self.said)):
            self._listen(deadline)
        self.port = found[1]

    def masked(self, text: str) -> str:
        """``text`` with the port that the page shows."""
        return text.replace(f":{self.port}", f":{self.shown_port}")

    def expect(self, shown: str, place: str) -> None:
        """Wait until it has said what the page shows."""
        deadline = time.monotonic() + PATIENCE_S
        while shown and not re.match(_pattern(shown), self.masked(self.said)):
            if time.monotonic() > deadline or self.process.poll() is not None:
                _same(self.masked(self.said), shown, place)
            self._listen(deadline, 0.2)

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=PATIENCE_S)[0].decode()
        assert self.process.returncode == 0, self.said

    def _listen(self, deadline: float, patience: float = PATIENCE_S) -> None:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], min(patience, max(0, deadline - time.monotonic())))
        heard = os.read(self.process.stdout.fileno(), 65536).decode() if ready else ""
        self.said += heard
        assert heard or patience < PATIENCE_S, f"the service says no address:\n{self.said}"


def _curl(words: list[str]) -> str:
    """What curl prints for these arguments: the options that the pages use, no more."""
    method, url, body, include = "", "", None, False
    headers: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        match word:
            case "-X" | "--request":
                method = next(rest)
            case "-H" | "--header":
                name, value = next(rest).split(":", 1)
                headers.append((name, value.strip()))
            case "-d" | "--data":
                body = next(rest)
                headers.append(("Content-Type", "application/x-www-form-urlencoded"))
            case "--json":
                body = next(rest)
                headers += [("Content-Type", "application/json"), ("Accept", "application/json")]
            case _ if re.fullmatch(r"-[isS]+", word):
                include = include or "i" in word
            case _:
                assert "://" in word or word.startswith(("localhost:", "127.0.0.1:")), f"curl {word}: not known here"
                url = word if "://" in word else f"http://{word}"
    if [name for name, _ in headers].count("Content-Type") > 1:
        headers = [(name, value) for name, value in headers if value != "application/x-www-form-urlencoded"]
    with httpx.Client(trust_env=False, timeout=PATIENCE_S, headers={"Accept": "*/*"}) as client:
        answer = client.request(method or ("GET" if body is None else "POST"), url, content=body, headers=headers)
    fields = "".join(f"{name.decode()}: {value.decode()}\n" for name, value in answer.headers.raw)
    head = f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}\n{fields}\n" if include else ""
    return head + answer.text


def _commands(text: str) -> list[tuple[str, str]]:
    """Each ``$ command`` and the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        found.append((command, shown))
    return found


def _pattern(shown: str) -> str:
    return "(?s:.*)".join(re.escape(part.rstrip()) for part in shown.rstrip().split("…")) + r"\s*\Z"


def _same(actual: str, shown: str, place: str) -> None:
    told = "\n".join(line.rstrip() for line in actual.split("\n"))
    if not re.match(_pattern(shown), told):
        pytest.fail(f"{place}\n--- shown\n{shown}\n--- real\n{actual}", pytrace=False)


def _same_answer(actual: str, shown: str, place: str) -> None:
    """The same status line, header fields and body, but for numbers and the date, which differ from run to run."""
    told, seen = (text.rstrip("\n").split("\n\n", 1) for text in (actual, shown))
    assert _fields(told[0]) == _fields(seen[0]), f"{place}\n{actual}"
    assert len(told) == len(seen), f"{place}\n{actual}"
    assert [_shape(json.loads(body)) for body in told[1:]] == [_shape(json.loads(body)) for body in seen[1:]], place


def _fields(head: str) -> list[str]:
    status, *fields = head.split("\n")
    return [status, *(re.sub(r"\d+", "0", re.sub(r"^(date): .*", r"\1", field)) for field in fields)]


def _shape(value: Any) -> Any:
    """A JSON value whose times and numbers in text are all alike; statuses stay."""
    match value:
        case dict():
            return {name: _shape(float(part) if _varies(name, part) else part) for name, part in value.items()}
        case list():
            return [_shape(part) for part in value]
        case str():
            return re.sub(r"\d+", "0", value)
        case float():
            return 0.0
        case _:
            return value


def _varies(name: str, part: Any) -> bool:
    return name.endswith("_ms") and isinstance(part, int)


def _cut_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No block may leave this machine."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        assert isinstance(address, str | bytes) or address[0] in ("127.0.0.1", "::1", "localhost"), address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)


@pytest.mark.parametrize(
    ("actual", "shown"),
    [("a\nb\n", "a\n…\n"), ("a 17 b\n", "a … b\n"), ("x\ny\nz\n", "x\n…\nz\n"), ("a  \n", "a\n")],
)
def test_an_ellipsis_stands_for_anything(actual: str, shown: str) -> None:
    """… in a page's output stands for any text, also of several lines."""
    _same(actual, shown, "here")


@pytest.mark.parametrize(
    ("actual", "shown"), [("a\nb\n", "a\n"), ("a\n", "b\n"), ("a 1\n", "a … b\n"), ("ab\n", "a\n")]
)
def test_what_differs_is_seen(actual: str, shown: str) -> None:
    """Output that a page shows otherwise, or only in part, fails the page."""
    with pytest.raises(pytest.fail.Exception):
        _same(actual, shown, "here")


ANSWER = """HTTP/1.1 429 Too Many Requests
date: Mon, 30 Nov 2026 12:45:10 GMT
retry-after: 60

{"status": 429, "detail": "Try again in 60 seconds.", "retry_after_ms": 59978}
"""


def test_a_later_answer_is_the_same() -> None:
    """An answer that a page shows is the same whenever it is given, and however its body is laid out."""
    later = ANSWER.replace("Mon, 30 Nov 2026 12:45:10", "Tue, 01 Dec 2026 09:00:00").replace("60", "59")
    _same_answer(ANSWER, later.replace(", ", ",\n  ").replace("Tue,\n ", "Tue,"), "here")


@pytest.mark.parametrize(
    ("part", "other"),
    [("429", "403"), ("retry-after", "x-retry"), ('"detail"', '"title"'), ("Try again", "Wait"), ("59978", "null")],
)
def test_another_answer_is_seen(part: str, other: str) -> None:
    """Another status, field, member, sentence or kind of value fails the page."""
    with pytest.raises(AssertionError):
        _same_answer(ANSWER, ANSWER.replace(part, other), "here")
