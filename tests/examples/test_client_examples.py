"""Each example does what it says, against a fake of its service on a free port; only the parallel one takes real time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, Self
from zoneinfo import ZoneInfo

import pytest
from tests.client.transports.server import Answer, Scripted, scripted

from headway import MemoryStore
from headway.testing import ManualClock

EXAMPLES = Path(__file__).parents[2] / "examples"
PACIFIC = ZoneInfo("America/Los_Angeles")


@pytest.fixture
def server() -> Iterator[Scripted]:
    """A server that answers as it is told."""
    with scripted() as state:
        yield state


def example(name: str) -> ModuleType:
    """An example's script as a module."""
    from importlib.util import module_from_spec, spec_from_file_location

    (path,) = (EXAMPLES / name).glob("*.py")
    spec = spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def at(day: int, hour: int) -> int:
    """Seconds since 1970 of an hour in California in January 2027."""
    return int(datetime(2027, 1, day, hour, tzinfo=PACIFIC).timestamp())


def test_search_console_sends_eleven_a_pacific_day(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty-five URLs: a plan over three days; eleven are sent today, eleven tomorrow, and the rest the day after."""
    submit, clock = example("search_console"), ManualClock(at(14, 22))
    urls = tmp_path / "urls.txt"
    urls.write_text("".join(f"https://example.com/{number}\n" for number in range(25)))
    api = server.plan("/publish", Answer(200, (), b"{}"))
    words = [str(urls), "--property", "sc-domain:example.com", "--budget", str(tmp_path / "budget.db"), "--api", api]
    assert submit.main([*words, "--plan-only"], timer=clock) == 0
    days = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert days == ["2027-01-14"] * 11 + ["2027-01-15"] * 11 + ["2027-01-16"] * 3
    for day, sent, code in ((14, 11, 75), (14, 11, 75), (15, 22, 75), (16, 25, 0)):
        clock.set(at(day, 23))
        assert submit.main(words, timer=clock) == code
        assert len(server.seen) == sent
    said = capsys.readouterr().err
    assert "14 URLs are left for another day." in said
    assert "Try again" in said
    assert [json.loads(seen.body)["url"] for seen in server.seen] == [f"https://example.com/{n}" for n in range(25)]


def test_search_console_s_own_refusal_is_for_everybody(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service that says "tomorrow" although the budget has room is believed by the next run, too; properties differ."""
    submit, clock = example("search_console"), ManualClock(at(14, 22))
    urls = tmp_path / "urls.txt"
    urls.write_text("https://example.com/a\n")
    spent = Answer(429, (("Retry-After", "7200"),), b'{"error": {"status": "RESOURCE_EXHAUSTED"}}')
    api = server.plan("/publish", spent, Answer())
    words = [str(urls), "--budget", str(tmp_path / "budget.db"), "--api", api, "--property"]
    assert submit.main([*words, "a"], timer=clock) == 75
    assert submit.main([*words, "a"], timer=clock) == 75
    assert len(server.seen) == 1
    assert submit.main([*words, "b"], timer=clock) == 0


def test_search_console_s_plan_begins_with_what_is_left() -> None:
    """What is left of today goes today; full days follow."""
    plan = list(example("search_console").plan(map(str, range(14)), 2, date(2027, 1, 31)))
    assert [day.isoformat() for day, _ in plan] == ["2027-01-31"] * 2 + ["2027-02-01"] * 11 + ["2027-02-02"]


FRESH = Answer(403, (("Content-Type", "application/json"),), b'{"code": "SiteVerificationNotCompleted"}')
WRONG = Answer(403, (("Content-Type", "application/json"),), b'{"code": "UserForbiddedToAccessSite"}')
BARE = Answer(403)


@pytest.mark.parametrize(
    ("answers", "fresh", "code", "sent", "says"),
    [
        ((FRESH, BARE, Answer(202)), True, 0, 3, "being verified"),
        ((WRONG, Answer(200)), True, 77, 1, "key is wrong"),
        ((BARE, Answer(200)), False, 77, 1, "key is wrong"),
        ((FRESH,), True, 75, 5, "still not verified"),
        ((Answer(429), Answer(200)), False, 0, 2, "accepted"),
        ((Answer(422, (), b"not this host's"),), False, 1, 1, "422"),
    ],
)
def test_indexnow_tells_a_fresh_key_from_a_wrong_one(
    answers: tuple[Answer, ...],
    fresh: bool,
    code: int,
    sent: int,
    says: str,
    server: Scripted,
    clock: ManualClock,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While the key is fresh a 403 is tried a few times, a minute or more apart, unless it says that the key is wrong."""
    urls = tmp_path / "urls.txt"
    urls.write_text("https://www.example.com/a\n")
    words = [str(urls), "--host", "www.example.com", "--key", "0123456789abcdef", "--api", server.plan("/", *answers)]
    start = clock.now
    assert example("indexnow").main([*words, *(["--fresh"] if fresh else [])], timer=clock) == code
    assert len(server.seen) == sent
    assert len({seen.body for seen in server.seen}) == 1
    assert says in capsys.readouterr().err
    if fresh:
        assert (clock.now - start) / 1e9 >= 60 * (sent - 1)


class Fake:
    """A service on a free port; ``answer`` says what it answers, in a thread for each call."""

    def __init__(self) -> None:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def reply(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, fields, body = fake.answer()
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = reply  # noqa: N815  # http.server's names

            def log_message(self, format: str, *args: Any) -> None:  # http.server's name
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, fields and body."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class OneAtATime(Fake):
    """A service that refuses parallel callers, and knows when the first call and the last came."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.served = self.refused = 0
        self.first = self.last = 0.0
        super().__init__()

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Take two milliseconds, alone."""
        alone, begun = self.lock.acquire(blocking=False), time.monotonic()
        try:
            if not alone:
                self.refused += 1
                return 429, {}, b""
            time.sleep(0.002)
            self.served, self.first, self.last = self.served + 1, self.first or begun, begun
            return 200, {}, b"done"
        finally:
            if alone:
                self.lock.release()


def test_four_parallel_scripts_share_one_budget(tmp_path: Path) -> None:
    """Four processes call a service that refuses parallel callers; none is ever refused, all calls are made, 50 ms apart."""
    words = [sys.executable, str(EXAMPLES / "parallel_scripts/call.py"), "--budget", str(tmp_path / "budget.db")]
    with OneAtATime() as service:
        scripts = [
            subprocess.Popen([*words, "--calls", "5", service.url], stdout=subprocess.PIPE, text=True) for _ in range(4)
        ]
        lines = "".join(script.communicate(timeout=60)[0] for script in scripts).splitlines()
    assert [script.returncode for script in scripts] == [0] * 4
    assert (service.served, service.refused) == (20, 0)
    assert service.last - service.first >= 19 * 0.05 - 0.5  # a call may come a while after its turn
    assert len(lines) == 20


class Model(Fake):
    """A language model: 100 tokens a call, 1000 tokens in any 800 ms (a call may come a while after its turn); says what is left."""

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.refused = 0
        super().__init__()

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """One completion, or a refusal."""
        now = time.monotonic()
        used = 100 * sum(call > now - 0.8 for call in self.calls)
        if used + 100 > 1000:
            self.refused += 1
            return 429, {}, b'{"error": {"code": "rate_limit_exceeded"}}'
        self.calls.append(now)
        body = {"choices": [{"message": {"content": "hi"}}], "usage": {"total_tokens": 100}}
        fields = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": str(900 - used)}
        return 200, fields, json.dumps(body).encode()


def test_llm_client_keeps_to_requests_and_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen calls whose tokens are only known afterwards: none is refused, and the quota decides how long it takes."""
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("hello\n" * 16)
    words = [str(prompts), "--requests", "100 per 1 s", "--tokens", "1000 per 1 s"]
    with Model() as model:
        began = time.monotonic()
        assert example("llm_client").main([*words, "--api", model.url, "--budget", str(tmp_path / "budget.db")]) == 0
        took = time.monotonic() - began
    assert capsys.readouterr().out == "hi\n" * 16
    assert (len(model.calls), model.refused) == (16, 0)
    assert 1 <= took < 20


def test_llm_client_says_why_it_stops(
    server: Scripted, clock: ManualClock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spent quota is no rate: the sentence is printed, and nothing is tried again."""
    body = (
        b'{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota, check your billing"}}'
    )
    server.plan("/chat/completions", Answer(429, (("Content-Type", "application/json"),), body))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("hello\n")
    words = [str(prompts), "--api", server.url]
    assert example("llm_client").main(words, timer=clock, store=MemoryStore(clock=clock)) == 75
    assert "used up" in capsys.readouterr().err
    assert len(server.seen) == 1
