"""The refusal page in a real browser: it counts down, on a telephone and a desk, on light and on dark paper."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from browser import FAINT, Browser
from headway.core.quota import HOUR, SECOND
from headway.presentation.response import Response, respond

from .verdicts import one_refusal

pytestmark = pytest.mark.xdist_group("browser")

LEFT = "document.getElementById('left').textContent"
SHOWN = """(id => { const part = document.getElementById(id); return !!part && part.checkVisibility(); })"""
PAPER = "getComputedStyle(document.body).backgroundColor"
IN_VIEW = """(() => { const box = document.querySelector("main").getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth; })()"""
PATIENCE_S = 60


@contextmanager
def serving(response: Response) -> Iterator[str]:
    """The page as a server sends it, its fields with it; every other address is asked for in vain."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(response.status if self.path == "/" else 404)
            for name, value in response.headers:
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(320, 568), (360, 740), (1280, 800)])
def test_the_page_can_be_read(browser: Browser, width: int, height: int, dark: bool) -> None:
    """At any width and on either paper the sentence and the countdown are in view and stand out; the policy lets both run."""
    with (
        serving(respond(one_refusal(25 * HOUR), accept="text/html")) as url,
        browser.page(url, width=width, height=height, dark=dark) as page,
    ):
        complaints = [line for line in page.complaints() if "status of 429" not in line and "favicon" not in line]
        assert complaints == []
        assert page.run(LEFT).startswith(("25:00:00", "24:59:"))
        assert page.run(f"{SHOWN}('left')")
        assert not page.run(f"{SHOWN}('again')")
        assert page.run(IN_VIEW)
        assert page.too_wide() == (0, [])
        assert page.run(FAINT) == []
        assert page.run(PAPER) == ("rgb(22, 22, 26)" if dark else "rgb(255, 255, 255)")


def test_it_counts_down_to_the_end(browser: Browser) -> None:
    """The countdown ends no sooner than the wait does, then the page says so and offers to try again."""
    response = respond(one_refusal(2 * SECOND), accept="text/html")
    with serving(response) as url:
        begun = time.monotonic()
        with browser.page(url, width=360) as page:
            sentence = page.run("document.getElementById('status').textContent")
            assert "Try again in 2 seconds" in sentence
            while page.run(f"{SHOWN}('left')"):
                assert page.run(LEFT) in ("0:02", "0:01")
                assert time.monotonic() - begun < PATIENCE_S
                time.sleep(0.05)
            assert time.monotonic() - begun >= 2
            assert page.run(f"{SHOWN}('again')")
            assert page.run("document.getElementById('status').textContent") == "You can try again now."
            assert page.run("document.getElementById('again').href") == url


def test_the_policy_stops_what_somebody_puts_into_the_page(browser: Browser) -> None:
    """A script or a picture that gets into the page by another way neither runs nor loads."""
    response = respond(one_refusal(HOUR), accept="text/html")
    other = response.body.replace(
        b"</main>", b"<script>document.title = 'taken'</script><img src='/stolen.png'></main>"
    )
    with serving(Response(response.status, response.headers, other)) as url, browser.page(url) as page:
        assert page.run("document.title") != "taken"
        assert any("ontent Security Policy" in line for line in page.complaints())
        assert page.run("document.images[0].naturalWidth") == 0
