"""Strict services: each refuses the first request over its quota, says so in the dialect of somebody, and counts.

Their arithmetic is written here anew, on the monotonic clock, so that nothing of the project judges itself; but for
``own``, which is the project's own server side.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway import Limit, Limiter

COUNT, PERIOD = 30, 2.0
TOKENS = 10
Verdict = tuple[int, dict[str, str], str]


class Service:
    """Counts what it admits and what it refuses."""

    def __init__(self) -> None:
        self.admitted: list[float] = []
        self.refused = 0
        self.lock = threading.Lock()

    def ask(self) -> Verdict:
        """Decide one request."""
        with self.lock:
            now = time.monotonic()
            status, fields, body = self.decide(now)
            if status == 200:
                self.admitted.append(now)
            else:
                self.refused += 1
            return status, fields, body

    def decide(self, now: float) -> Verdict:
        """Status, fields and body for one request."""
        raise NotImplementedError


class FixedWindow(Service):
    """So many per window; windows begin at whole multiples of the period; IETF fields."""

    window, used = -1, 0

    def decide(self, now: float) -> Verdict:
        window = int(now // PERIOD)
        if window != self.window:
            self.window, self.used = window, 0
        reset = (window + 1) * PERIOD - now
        return self.said(self.used < COUNT, reset)

    def said(self, fits: bool, reset: float) -> Verdict:
        """The answer in this service's dialect."""
        self.used += fits
        fields = {"RateLimit": f'"default";r={COUNT - self.used};t={int(reset) + 1}'}
        return (200, fields, "") if fits else (429, {**fields, "Retry-After": str(int(reset) + 1)}, "")


class GitHubLike(FixedWindow):
    """A fixed window with GitHub's fields and its 403."""

    def said(self, fits: bool, reset: float) -> Verdict:
        self.used += fits
        fields = {"x-ratelimit-limit": str(COUNT), "x-ratelimit-remaining": str(COUNT - self.used)}
        fields["x-ratelimit-reset"] = str(int(time.time() + reset) + 1)
        return (200, fields, "") if fits else (403, fields, '{"message": "API rate limit exceeded"}')


class Bucket(Service):
    """GCRA with the whole count as burst; refuses without a hint, as Stripe does."""

    tat = 0.0

    def decide(self, now: float) -> Verdict:
        step = PERIOD / COUNT
        tat = max(self.tat, now) + step
        if tat - now > PERIOD + 1e-9:
            return 429, {}, '{"error": {"code": "rate_limit"}}'
        self.tat = tat
        return 200, {}, ""


class OpenAiLike(Service):
    """A sliding log of requests and one of tokens, with OpenAI's fields."""

    def __init__(self) -> None:
        super().__init__()
        self.log: deque[float] = deque()

    def decide(self, now: float) -> Verdict:
        while self.log and self.log[0] <= now - PERIOD:
            self.log.popleft()
        fits = len(self.log) < COUNT
        if fits:
            self.log.append(now)
        left = COUNT - len(self.log)
        reset = f"{int((self.log[0] + PERIOD - now) * 1000)}ms"
        fields = {
            f"x-ratelimit-limit-{what}": str(COUNT * each) for what, each in (("requests", 1), ("tokens", TOKENS))
        }
        fields |= {
            f"x-ratelimit-remaining-{what}": str(left * each) for what, each in (("requests", 1), ("tokens", TOKENS))
        }
        fields |= {f"x-ratelimit-reset-{what}": reset for what in ("requests", "tokens")}
        return (200, fields, "") if fits else (429, fields, json.dumps({"error": {"code": "rate_limit_exceeded"}}))


class Own(Service):
    """The project's own server side."""

    def __init__(self) -> None:
        super().__init__()
        self.limiter = Limiter(Limit("default", f"{COUNT} per {PERIOD:g} s"))

    def decide(self, now: float) -> Verdict:
        decision = self.limiter.hit()
        fields = decision.headers()
        return (200, fields, "") if decision.allowed else (429, fields, json.dumps(decision.problem()))


KINDS: dict[str, Callable[[], Service]] = {
    "fixed-window": FixedWindow,
    "github": GitHubLike,
    "stripe": Bucket,
    "openai": OpenAiLike,
    "own": Own,
}


class Server:
    """All services on one free port, each under its name."""

    def __init__(self) -> None:
        self.services = {name: make() for name, make in KINDS.items()}
        services = self.services

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:  # http.server's name
                status, fields, body = services[self.path.strip("/")].ask()
                self.send_response(status)
                for name, value in {**fields, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: Any) -> None:  # http.server's name
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
