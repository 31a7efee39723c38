"""``headway lint`` as somebody runs it: files of every kind, URLs, formats, exit statuses, mistakes."""

from __future__ import annotations

import gzip
import io
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headway.cli import main
from service.serving import serving as service

CURL = """HTTP/1.1 429 Too Many Requests
Server: nginx
Date: Sat, 01 Aug 2026 00:00:00 GMT
Content-Type: application/problem+json
Cache-Control: no-store
Retry-After: {wait}
RateLimit: "per-ip";r=0;t=12
RateLimit-Policy: "per-ip";q=10;w=60

{{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded", "violated-policies": ["per-ip"]}}
"""
CORPUS = Path(__file__).parents[1] / "client/data/rejections.jsonl"
LINE = '203.0.113.7 - - [25/Oct/2015:04:{:02}:{:02} +0100] "GET /api HTTP/1.1" {} 5 "-" "curl/8"\n'


def run(*words: str) -> int:
    """One command line in this process; wrong usage ends in its exit status too."""
    try:
        return main(["lint", *words])
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    """Writes a file; its path."""

    def written(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return written


Write = Callable[[str, "str | bytes"], str]


def test_a_clean_refusal_passes(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """What curl -i printed of a refusal without a fault: full marks, exit 0, nothing on standard error."""
    assert run(write("refusal.txt", CURL.format(wait=12)), "--min-score", "100") == 0
    out, err = capsys.readouterr()
    assert "score 100 %; no findings" in out
    assert err == ""


def test_a_finding_fails_and_shows_its_fix(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """An early wait: exit 1, the rule's id, why, and the fix of the server that answered; --fix asks for others."""
    path = write("refusal.txt", CURL.format(wait="11"))
    assert run(path) == 1
    out, _ = capsys.readouterr()
    assert "[retry-after-before-t]" in out
    assert "fix in nginx:" in out
    assert run(path, "--fix", "kong,django") == 1
    out, _ = capsys.readouterr()
    assert "fix in Kong:" in out
    assert "fix in nginx" not in out
    assert run(path, "--fix", "none") == 1
    assert "fix in" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--ignore", "retry-after-before-t"], 0),
        (["--ignore", "no-store-missing,retry-after-before-t", "--ignore", "limit-not-named"], 0),
        (["--fail-on", "never"], 0),
        (["--fail-on", "error"], 1),
        (["--fail-on", "never", "--min-score", "86"], 1),
        (["--fail-on", "never", "--min-score", "85"], 0),
    ],
)
def test_what_fails_is_chosen(words: list[str], status: int, write: Write) -> None:
    """Rules are ignored by id; the level that fails and the least score are options; both hold for CI."""
    assert run(write("refusal.txt", CURL.format(wait=11)), *words) == status


def test_json_lines_are_told_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON lines are known by their content; each refusal has its line and id; --jsonl is the same."""
    assert run(str(CORPUS), "--format", "json", "--fail-on", "never") == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["refusals"]) == 97
    assert (told["refusals"][4]["line"], told["refusals"][4]["part"]) == (5, "github-graphql-200-rate-limited")
    assert run(str(CORPUS), "--format", "json", "--fail-on", "never", "--jsonl") == 0
    assert json.loads(capsys.readouterr().out) == told


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"version": "1.2", "entries": list(entries)}})


def entry(status: int, headers: dict[str, str], text: str, accept: str = "application/json") -> dict[str, Any]:
    return {
        "startedDateTime": "2026-08-01T00:00:00Z",
        "time": 20,
        "request": {
            "method": "GET",
            "url": "https://api.example/items",
            "headers": [{"name": "Accept", "value": accept}],
        },
        "response": {
            "status": status,
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
            "content": {"text": text},
        },
    }


def test_a_har_file(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Every entry of a HAR is looked at; what its request asked for counts, and the clock that took it."""
    page = "<html><h1>Too Many Requests</h1></html>"
    late = {"Content-Type": "text/html", "Date": "Sat, 01 Aug 2026 00:05:00 GMT"}
    content = har(entry(200, {}, "{}"), entry(429, late, page), entry(429, late, page, accept="text/html"))
    assert run(write("site.har", content), "--format", "json") == 1
    told = json.loads(capsys.readouterr().out)
    html = [one["part"] for one in told["findings"] if one["rule"] == "html-for-api"]
    assert html == ["entry 1, GET https://api.example/items"]
    assert "clock-skew" in {one["rule"] for one in told["findings"]}
    assert len(told["refusals"]) == 2


OPENAPI = """
openapi: 3.1.0
paths:
  /items:
    get:
      responses: {"200": {description: ok}}
"""


@pytest.mark.parametrize(
    "content", [OPENAPI, json.dumps({"openapi": "3.0.1", "paths": {"/items": {"get": {"responses": {}}}}})]
)
def test_an_openapi_document(content: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A document in YAML or JSON is known by its content, and its findings have lines."""
    assert run(write("api", content)) == 1
    assert "GET /items: no 429 among its responses" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("packed", [False, True])
def test_an_access_log(packed: bool, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A log in any format, compressed too, is read for limits that hide behind another status."""
    lines = [LINE.format(0, 0, 200), *(LINE.format(1, second, 403) for second in range(10)), LINE.format(3, 0, 200)]
    content = "".join(lines).encode()
    assert run(write("access.log", gzip.compress(content) if packed else content)) == 1
    assert "[log-forbidden-burst]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", [CURL.format(wait=12), LINE.format(0, 0, 429), OPENAPI, CORPUS.read_text("utf-8").splitlines()[0]]
)
def test_standard_input(content: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe is told by its content as a file is."""

    class Piped:
        buffer = io.BytesIO(content.encode())

    monkeypatch.setattr(sys, "stdin", Piped)
    assert run("-", "--fail-on", "never") == 0
    assert capsys.readouterr().out.startswith("-: ")


@pytest.mark.parametrize("packed", [False, True])
def test_a_piped_log_loses_no_line(
    packed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was looked at to tell what it is, is read as well, also of a log that is longer than that."""
    content = "".join(LINE.format(number // 60 % 60, number % 60, 429) for number in range(3000)).encode()

    class Piped:
        buffer = io.BytesIO(gzip.compress(content) if packed else content)

    monkeypatch.setattr(sys, "stdin", Piped)
    assert run("-", "--fail-on", "never") == 0
    assert "an access log of 3,000 requests, 3,000 of them 429" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words", "status", "said"),
    [
        ("", ["--as", "curl"], 65, "is empty; expected what curl -i prints"),
        ("x", ["--as", "curl"], 65, "status line"),
        ('{"status": 429}\n{"status": ', ["--jsonl"], 65, ":2: is no response"),
        ('{"log": {"entries": 3}}', [], 65, "log.entries"),
        ('{"log": {\n"entries": [', [], 65, ":2: is no HAR"),
        ("openapi: 3.1.0\n a: [", [], 65, ":2: is not YAML"),
        ("swagger: '2.0'\n", [], 65, "version 3"),
        ("what is this\n", [], 65, "known format"),
        ("[" * 3000, ["--as", "har"], 65, "HAR"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    content: str, words: list[str], status: int, said: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not what it should be is one line with its name, and its line where there is one."""
    path = write("given", content)
    assert run(path, *words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("headway lint: ")
    assert path in err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["gone.har"], 66, "gone.har"),
        (["x", "--min-score", "101"], 64, "percent"),
        (["x", "--ignore", "retry-after-mising"], 64, "did you mean retry-after-missing"),
        (["x", "--fix", "apache"], 64, "apache"),
        (["x", "--probe", "3"], 64, "no URL"),
        (["x", "--data", "{}"], 64, "no URL"),
        (["http://127.0.0.1:1/", "--probe", "21"], 64, "2 to 20"),
        (["http://127.0.0.1:1/", "--probe", "1"], 64, "2 to 20"),
        (["http://user:secret@127.0.0.1:1/"], 64, "password"),
        (["http:///x"], 64, "no URL"),
        (["http://127.0.0.1:99999/"], 64, "ort"),
        (["http://127.0.0.1:1/", "--header", "nonsense"], 64, "nonsense"),
        (["http://127.0.0.1:1/", "--timeout", "0"], 64, "timeout"),
        (["http://127.0.0.1:1/"], 69, "no answer"),
    ],
)
def test_mistakes_are_one_line(words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option or a target that cannot be is one line that says what is accepted; a password is never repeated."""
    assert run(*words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "secret" not in err.replace("headway lint: the URL holds", "")


class Api(ThreadingHTTPServer):
    """A loopback API that answers what it is told to, in order, the last for ever; it remembers who asked what."""

    def __init__(self, *answers: tuple[int, dict[str, str], str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Answers."""

    def do_GET(self) -> None:
        api = self.server
        assert isinstance(api, Api)
        api.asked.append((self.path, dict(self.headers.items())))
        status, headers, body = api.answers.pop(0) if len(api.answers) > 1 else api.answers[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Silence."""


@contextmanager
def serving(*answers: tuple[int, dict[str, str], str]) -> Iterator[tuple[Api, str]]:
    """Serve; the server and its address."""
    with Api(*answers) as api:
        thread = threading.Thread(target=api.serve_forever, daemon=True)
        thread.start()
        try:
            yield api, f"http://127.0.0.1:{api.server_address[1]}"
        finally:
            api.shutdown()
            thread.join(10)


OK = (200, {"RateLimit": '"per-ip";r=1.5'}, "{}")
REFUSED = (429, {"Retry-After": "soon"}, "")


def test_a_url_gets_one_request_that_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --probe one request is sent, said beforehand, and its fields are looked at."""
    with serving(OK, REFUSED) as (api, url):
        assert run(f"{url}/items?a=b", "--header", "X-Api-Key: k") == 1
    out, err = capsys.readouterr()
    assert [path for path, _ in api.asked] == ["/items?a=b"]
    assert api.asked[0][1]["X-Api-Key"] == "k"
    assert api.asked[0][1]["User-Agent"].startswith("headway-lint/")
    assert "sends 1 request" in err
    assert "[malformed-field]" in out
    assert "nothing is scored" in out


def test_a_probe_stops_at_the_first_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    """--probe sends up to as many, one after another, and not one more after a refusal: its wait is kept by not going on."""
    with serving(OK, OK, REFUSED) as (api, url):
        assert run(url, "--probe", "20") == 1
    out, err = capsys.readouterr()
    assert len(api.asked) == 3
    assert "up to 20 requests" in err
    assert "[retry-after-malformed]" in out


def test_a_probe_ends_where_it_said() -> None:
    """A server that never refuses is asked as often as was said, one that breaks only until it does."""
    with serving((200, {}, "")) as (api, url):
        assert run(url, "--probe", "4") == 0
        assert len(api.asked) == 4
    with serving((500, {}, "")) as (api, url):
        run(url, "--probe", "4")
        assert len(api.asked) == 1


def test_redirects_are_not_followed() -> None:
    """Where a redirect leads was not asked for."""
    with serving((302, {"Location": "/elsewhere"}, "")) as (api, url):
        assert run(url) == 0
        assert [path for path, _ in api.asked] == ["/"]


def test_our_own_service_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The running service, asked by --data until it refuses, has full marks and no finding."""
    policies = 'store = "memory://"\n[[policies.codes.limits]]\nname = "resend"\nquota = "1 per 60s"\nby = "phone"\n'
    asked = '{"policy": "codes", "attributes": {"phone": "1"}}'
    with service(tmp_path, policies) as running:
        words = (f"{running.url}/v1/check", "--data", asked, "--probe", "3", "--min-score", "100", "--fail-on", "note")
        assert run(*words) == 0
    out, err = capsys.readouterr()
    assert "2 responses, 1 refusal" in out
    assert "POST" in err


def test_a_score_that_nothing_gave_is_too_low(capsys: pytest.CaptureFixture[str]) -> None:
    """--min-score fails where no refusal was seen."""
    with serving((200, {}, "")) as (_, url):
        assert run(url, "--min-score", "1") == 1
    assert "nothing could be scored" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_every_format_is_printed(form: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Each format prints one document and nothing else on standard output."""
    assert run(write("refusal.txt", CURL.format(wait=11)), "--format", form) == 1
    out, err = capsys.readouterr()
    begins = {"text": "/", "json": "{", "sarif": "{", "junit": "<?xml"}[form]
    assert out.startswith(begins) or form == "text"
    assert err == ""
    if form in ("json", "sarif"):
        json.loads(out)


def test_a_limit_that_does_not_say_so(write: Write) -> None:
    """--assume-limit makes a bare 403 a limit's."""
    bare = write("bare.txt", "HTTP/1.1 403 Forbidden\nContent-Type: application/json\nCache-Control: no-store\n\n{}\n")
    assert run(bare, "--fail-on", "error") == 0
    assert run(bare, "--fail-on", "error", "--assume-limit") == 1


@pytest.mark.parametrize(
    ("begins", "status", "says"),
    [
        (b"HTTP/1.1 429 Too Many Requests\r\nX-Slow: ", 69, "had not come after 0.5 s"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 ", 69, "had not come after 0.5 s"),
        (b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: soon\r\n\r\n", 1, "1 refusal"),
    ],
)
def test_a_server_that_trickles_is_not_waited_for(
    begins: bytes, status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--timeout is for the whole answer, not for each byte of it; what was said by then is audited."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(begins)
                for _ in range(300):
                    if over.wait(0.1):
                        return
                    connection.sendall(b"a")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        began = time.monotonic()
        assert run(f"http://127.0.0.1:{listener.getsockname()[1]}/", "--timeout", "0.5") == status
        assert time.monotonic() - began < 20
        over.set()
        thread.join(10)
    assert says in "".join(capsys.readouterr())


@pytest.mark.parametrize("columns", ["60", "80", "133"])
@pytest.mark.parametrize("answers", [1, 3])
def test_no_line_is_wider_than_the_terminal(
    columns: str, answers: int, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Marks, tables, findings and reasons are wrapped between words; fixes are text to copy, and stay as they are."""
    monkeypatch.setenv("COLUMNS", columns)
    capture = (
        "HTTP/1.1 429 Slow\r\nRetry-After: soon, or a little later than that\r\nServer: nginx\r\n\r\nToo many\n"
        * answers
    )
    assert run(write("refusal.txt", capture).replace(str(Path.cwd()), ""), "--fix", "none") == 1
    lines = capsys.readouterr().out.splitlines()
    path = [line for line in lines if "refusal.txt" in line]
    assert path
    assert not [line for line in lines if len(line) > min(120, int(columns)) and line not in path]


def test_another_scheme_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    """What reads like a URL of another kind is not looked for on the disk."""
    assert run("ftp://api.example/x") == 64
    assert "'ftp://api.example/x' is no URL to ask; expected http:// or https://, or a file" in capsys.readouterr().err


def test_a_terminals_width_that_is_no_number_is_left_alone(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COLUMNS may hold anything."""
    monkeypatch.setenv("COLUMNS", "wide")
    assert run(write("refusal.txt", CURL.format(wait=11)), "--fail-on", "never") == 0
