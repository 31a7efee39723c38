"""The pages: one form, one sentence, and a countdown where JavaScript runs. Everything that varies is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --soft: #55555f; --line: #767680; --bad: #b3261e; --go: #0b57d0; --on: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf1; --paper: #16161a; --soft: #b3b3bd; --line: #8e8e99; --bad: #ffb4ab; --go: #9ec1ff; --on: #0b1d3a }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.125rem/1.5 system-ui, sans-serif }
main { max-width: 32rem; margin: 0 auto; padding: 2rem 1.25rem }
h1 { font-size: 1.6rem; margin: 0 0 1rem }
.note { border-left: .3rem solid var(--go); padding: .5rem 1rem; margin: 0 0 1.5rem }
.note.bad { border-color: var(--bad) }
.note p { margin: 0 }
#left { font-size: 2.25rem; font-variant-numeric: tabular-nums; color: var(--soft) }
label, legend { font-weight: 600 }
.hint { color: var(--soft); margin: .1rem 0 .4rem }
input[type=tel], input[type=text] { font: inherit; width: 100%; box-sizing: border-box; padding: .6rem; border: .1rem solid var(--line);
  border-radius: .3rem; background: var(--paper); color: var(--ink) }
fieldset { border: 0; padding: 0; margin: 1.25rem 0 }
legend { padding: 0 }
fieldset label { font-weight: 400 }
fieldset p { margin: .4rem 0 }
button { font: inherit; font-weight: 600; padding: .6rem 1.2rem; border: 0; border-radius: .3rem; background: var(--go); color: var(--on) }
form + form { margin-top: 2rem; padding-top: 1.5rem; border-top: .1rem solid var(--line) }
:focus-visible { outline: .2rem solid var(--go); outline-offset: .15rem }
"""

SCRIPT: Final = """\
(function () {
  var left = document.getElementById("left"), said = document.getElementById("said"), start = performance.now();
  if (!left) return;
  left.hidden = false;
  function two(n) { return (n < 10 ? "0" : "") + n; }
  function show() {
    var ms = left.getAttribute("data-ms") - (performance.now() - start);
    if (ms <= 0) {
      left.hidden = true;
      said.textContent = left.getAttribute("data-over");
      return;
    }
    var s = Math.ceil(ms / 1000), h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
    left.textContent = (h ? h + ":" + two(m) : m) + ":" + two(s % 60);
    setTimeout(show, Math.min(1000, ms % 1000 + 1));
  }
  show();
})();
"""
"""The countdown is for the eye only: a screen reader is told the sentence, and once that it is over."""

SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True, slots=True)
class Note:
    """What the page tells the person.

    Attributes:
        text: a sentence or two.
        bad: it did not work.
        wait_ms: counted down; 0 for nothing to wait for.
    """

    text: str
    bad: bool = False
    wait_ms: int = 0


def page(
    title: str, *notes: Note, phone: str = "", channel: str = "sms", wrong: bool = False, sent: bool = False
) -> str:
    """The page.

    Args:
        title: its heading.
        notes: what the person is told.
        phone: what they had entered.
        channel: "sms" or "voice".
        wrong: the phone's field has the error that the notes tell.
        sent: a code is on its way, so its form is shown first.
    """
    shown = "".join(map(_note, notes))
    forms = (_code_form(phone) if sent else "") + _phone_form(phone, channel, wrong, again=sent)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{shown}{forms}</main>
<script src="/countdown.js"></script>
</body>
</html>
"""


def _note(note: Note) -> str:
    kind, role = ("note bad", "alert") if note.bad else ("note", "status")
    left = ""
    if note.wait_ms:
        over = "You can ask for a code now."
        left = f'\n<p id="left" aria-hidden="true" hidden data-ms="{note.wait_ms}" data-over="{over}"></p>'
    said = ' id="said"' if note.wait_ms else ""
    return f'<div class="{kind}" role="{role}" id="note">\n<p{said}>{escape(note.text)}</p>{left}\n</div>\n'


def _phone_form(phone: str, channel: str, wrong: bool, *, again: bool) -> str:
    described = "phone-hint note" if wrong else "phone-hint"
    invalid = ' aria-invalid="true"' if wrong else ""
    kinds = "".join(
        f'<p><input type="radio" id="{value}" name="channel" value="{value}"{" checked" if channel == value else ""}> '
        f'<label for="{value}">{text}</label></p>\n'
        for value, text in (("sms", "Text message"), ("voice", "Phone call"))
    )
    return f"""<form method="post" action="/codes">
<label for="phone">Phone number</label>
<p class="hint" id="phone-hint">With its country code, such as +44 7700 900123</p>
<input type="tel" id="phone" name="phone" autocomplete="tel" required value="{escape(phone)}" aria-describedby="{described}"{invalid}>
<fieldset>
<legend>How shall we send the code?</legend>
{kinds}</fieldset>
<button type="submit">{"Send another code" if again else "Send the code"}</button>
</form>
"""


def _code_form(phone: str) -> str:
    return f"""<form method="post" action="/codes/check">
<input type="hidden" name="phone" value="{escape(phone)}">
<label for="code">Code</label>
<p class="hint" id="code-hint">Six digits</p>
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="12" aria-describedby="code-hint">
<p><button type="submit">Check the code</button></p>
</form>
"""
