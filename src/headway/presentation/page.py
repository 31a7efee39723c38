"""The small HTML page that a browser gets: one sentence, and a countdown where JavaScript runs.

No asset comes from elsewhere, everything that varies is escaped, and the page's own policy lets nothing but its own
style and script run. The countdown is for the eye only: a screen reader is told the sentence, and once that it is over.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from typing import Final

from headway.presentation.language import language
from headway.presentation.problem import Problem

__all__ = ["page", "page_security", "read_page"]

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1b1f;--paper:#fff;--soft:#55555f;--link:#0b57d0}
@media (prefers-color-scheme:dark){:root{--ink:#ececf1;--paper:#16161a;--soft:#b3b3bd;--link:#9ec1ff}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);
font:1.125rem/1.5 system-ui,sans-serif}
main{max-width:36rem;padding:2rem}
h1{font-size:1.5rem;margin:0 0 .5rem}
p{margin:.5rem 0}
#left{font-size:2.5rem;font-variant-numeric:tabular-nums;color:var(--soft)}
a{color:var(--link)}
"""
_SCRIPT: Final = """
(function () {
  var problem = JSON.parse(document.getElementById("problem").textContent);
  var left = document.getElementById("left"), status = document.getElementById("status");
  var again = document.getElementById("again"), start = performance.now();
  if (!left) return;
  again.hidden = true;
  left.hidden = false;
  function two(n) { return (n < 10 ? "0" : "") + n; }
  function show() {
    var ms = problem.retry_after_ms - (performance.now() - start);
    if (ms <= 0) {
      left.hidden = true;
      status.textContent = status.getAttribute("data-over");
      again.hidden = false;
      return;
    }
    var s = Math.ceil(ms / 1000), h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
    left.textContent = (h ? h + ":" + two(m) : m) + ":" + two(s % 60);
    setTimeout(show, Math.min(1000, ms % 1000 + 1));
  }
  show();
})();
"""


def page(found: Problem, locale: str) -> str:
    """The page for a refusal, in one of the shipped languages."""
    words = language(locale)
    titles = {
        429: words.gettext("Too many requests"),
        503: words.gettext("Temporarily unavailable"),
        422: words.gettext("Request too large"),
        403: words.gettext("Blocked"),
    }
    title = escape(titles.get(found.status, found.title))
    countdown = again = ""
    if found.retry_after_ms is not None:
        countdown = '\n<p id="left" aria-hidden="true" hidden></p>'
        retry = words.gettext("Try again")
        again = f'\n<p><a id="again" href="">{escape(retry)}</a></p>'
    over = escape(words.gettext("You can try again now."))
    return f"""<!doctype html>
<html lang="{escape(locale)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p id="status" role="status" aria-live="polite" data-over="{over}">{escape(found.detail)}</p>{countdown}{again}
</main>
<script type="application/problem+json" id="problem">{_embedded(found)}</script>
<script>{_SCRIPT}</script>
</body>
</html>
"""


@cache
def page_security() -> tuple[tuple[str, str], ...]:
    """The fields that go with the page: only its own style and script may run, and nothing may be loaded."""
    style, script = (b64encode(sha256(part.encode()).digest()).decode() for part in (_STYLE, _SCRIPT))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (("Content-Security-Policy", policy),)


def read_page(text: str) -> Problem:
    """The problem that ``page`` was made of.

    Raises:
        ValueError: the text is no such page.
    """
    finder = _Finder()
    finder.feed(text)
    if not finder.found:
        raise ValueError("the page carries no problem document; expected one that headway rendered")
    return Problem.read(json.loads("".join(finder.found)))


def _embedded(found: Problem) -> str:
    """The document as JSON that no HTML parser takes for markup."""
    text = json.dumps(found.document())  # ASCII only
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and ("id", "problem") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(data)
