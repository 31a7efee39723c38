"""A real browser for tests: Chromium without a window, asked over its own protocol (Chrome DevTools).

One browser for a whole test process; each page is a tab of its own, with the width, the paper and the clock that a test says.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from websockets.sync.client import connect

PATIENCE_S = 60
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)


def browser_path() -> str:
    """Where the browser is; a test without one is skipped, which fails under ``CI=true``."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium, or run scripts/install-servers")
    return found


class Browser:
    """A running Chromium. Use it in a ``with``."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = Path(self._folder.name)
        command = [browser_path(), *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        said = profile / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE_S
        while not (said.exists() and said.read_text().count("\n") >= 1):
            assert self._process.poll() is None and time.monotonic() < deadline, "Chromium does not start"
            time.sleep(0.05)
        port, path = said.read_text().split("\n")[:2]
        self._open = ExitStack()
        address = f"ws://127.0.0.1:{port}{path}"
        self._socket = self._open.enter_context(
            # no pings: they take numbers from ``random``, in a thread, while Hypothesis watches that nobody does
            connect(address, max_size=None, proxy=None, open_timeout=PATIENCE_S, ping_interval=None)
        )
        self._count = 0

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._open.close()
        finally:
            self._process.terminate()
            self._process.wait(PATIENCE_S)
            self._folder.cleanup()

    @contextmanager
    def page(self, url: str, *, width: int = 1100, height: int = 800, dark: bool = False) -> Iterator[Page]:
        """A tab that has loaded ``url``."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, width)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.send(f"{domain}.enable")
            page.send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=width < 600,
            )
            scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
            page.send("Emulation.setEmulatedMedia", features=scheme)
            page.load(url)
            yield page
        finally:
            self.send("Target.closeTarget", targetId=target)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; what happens meanwhile goes to the page it happens on."""
        self._count += 1
        asked = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        self._socket.send(json.dumps(asked))
        while True:
            heard = self.hear()
            if heard.get("id") == self._count:
                assert "error" not in heard, f"{method}: {heard['error']}"
                answer: dict[str, Any] = heard["result"]
                return answer

    def hear(self) -> dict[str, Any]:
        """The next message; events are kept by the page they belong to."""
        heard: dict[str, Any] = json.loads(self._socket.recv(timeout=PATIENCE_S))
        if "method" in heard and (page := Page.open.get(heard.get("sessionId", ""))):
            page.events.append(heard)
        return heard


class Page:
    """One tab."""

    open: dict[str, Page] = {}  # noqa: RUF012  # by session, so that events find their page

    def __init__(self, browser: Browser, session: str, width: int) -> None:
        self._browser = browser
        self._width = width
        self._session = session
        self.events: list[dict[str, Any]] = []
        Page.open[session] = self

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the tab something."""
        return self._browser.send(method, self._session, **params)

    def load(self, url: str) -> None:
        """Go there and wait until all is loaded."""
        answer = self.send("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._browser.hear()

    def run(self, script: str) -> Any:
        """What an expression in the page is worth."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, *, whole: bool = True) -> bytes:
        """A PNG of the page."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        return base64.b64decode(shot["data"])

    def too_wide(self) -> tuple[int, list[str]]:
        """By how many pixels the page is wider than its window, and the elements that stick out, but for those that scroll."""
        wider, parts = self.run(f"{_TOO_WIDE}({self._width})")
        return wider, parts

    def complaints(self) -> list[str]:
        """Whatever the page wrote to the console, threw, or was refused by its policy."""
        self.run("new Promise(done => setTimeout(done, 20))")  # messages that are on their way
        return [
            json.dumps(event["params"])[:2000]
            for event in self.events
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        ]

    def asked_for(self) -> list[str]:
        """The addresses it loaded or tried to load."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}


FAINT = """(() => {
  const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const paper = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
    const box = element.getBoundingClientRect();
    if (!words || !box.width || !box.height || ["STYLE", "SCRIPT", "title", "desc"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(paper(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push([words.slice(0, 40), contrast]);
  }
  return faint;
})()"""
"""An expression: the texts that stand out from their paper by less than 4.5:1 (WCAG 2.2, 1.4.3)."""

_TOO_WIDE = """(width => [document.documentElement.scrollWidth - width, [...document.querySelectorAll("main *")]
  .filter(part => !part.closest(".scroll") && part.checkVisibility() && part.getBoundingClientRect().right > width + 1)
  .map(part => part.tagName).slice(0, 5)])"""
