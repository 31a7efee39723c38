"""The whole answer: status, fields, body, in the form and language that the client accepts."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome
from headway.core.quota import HOUR, SECOND
from headway.core.verdict import Verdict
from headway.presentation.accept import HTML, PLAIN, PROBLEM, choose_form
from headway.presentation.problem import Problem
from headway.presentation.response import Response, read_problem, respond

from .verdicts import NOW, one_refusal

REFUSED = one_refusal(4 * 60 * SECOND)
CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def header(answer: Response, name: str) -> str | None:
    """The value of one field, which is sent at most once."""
    found = [value for given, value in answer.headers if given.lower() == name.lower()]
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, PROBLEM),
        ("", PROBLEM),
        ("*/*", PROBLEM),
        ("application/json", PROBLEM),
        ("application/problem+json", PROBLEM),
        ("application/*", PROBLEM),
        (CHROME, HTML),
        ("text/html", HTML),
        ("TEXT/HTML;level=1", HTML),
        ("text/plain", PLAIN),
        ("text/*", PLAIN),
        ("text/plain;q=0.5, text/html", HTML),
        ("text/html;q=0.5, */*;q=0.1", HTML),
        ("text/html;q=0, text/*", PLAIN),
        ("text/plain;q=0.3, text/html;level=1;q=0.5, text/html;q=0.1", HTML),
        ("application/problem+json;q=0, application/json;q=0, */*;q=0.1", PLAIN),
        ("text/html, application/json", PROBLEM),
        ("image/png", PROBLEM),
        ("image/avif,image/webp,*/*;q=0.8", PROBLEM),
        ("*/*;q=0", PROBLEM),
        ("garbage;;q=,/;q=9", PROBLEM),
        ("application/xml, text/plain;q=0.2", PLAIN),
    ],
)
def test_accept_is_followed(accept: str | None, form: str) -> None:
    """The form with the highest weight is sent; problem+json where nothing is preferred or nothing can be had."""
    assert choose_form(accept) == form
    answer = respond(REFUSED, accept=accept)
    assert (header(answer, "content-type") or "").split(";")[0] == form


def test_a_refusal_is_complete() -> None:
    """A refusal has its status, the limits' fields, Retry-After, no-store, its type, language and length."""
    answer = respond(REFUSED)
    assert answer.status == 429
    assert dict(answer.headers) == {
        "RateLimit-Policy": '"per-phone";q=5;w=86400',
        "RateLimit": '"per-phone";r=0;t=240',
        "Retry-After": "240",
        "Cache-Control": "no-store",
        "Content-Type": "application/problem+json",
        "Content-Language": "en",
        "Content-Length": str(len(answer.body)),
        "Vary": "Accept, Accept-Language",
        "X-Content-Type-Options": "nosniff",
    }
    assert json.loads(answer.body) == Problem.of(REFUSED).document()


@pytest.mark.parametrize(
    ("outcome", "status", "waits"),
    [(Never(20, 1, 1, 1), 422, False), (Never(0, 0, 0, 0), 403, False), (None, 503, True)],
)
@pytest.mark.parametrize("accept", [None, "text/plain", "text/html"])
def test_other_refusals(accept: str | None, outcome: Outcome | None, status: int, waits: bool) -> None:
    """Never is 422, blocked 403, without the store 503; Retry-After only where waiting helps; none is ever stored."""
    verdict = Verdict((Limit("x", "20/s"),), (outcome,), False, NOW, None if outcome else "away", (50,))
    answer = respond(verdict, accept=accept)
    assert answer.status == status
    assert (header(answer, "retry-after") is not None) is waits
    assert header(answer, "cache-control") == "no-store"
    assert answer.body


def test_an_admitted_request_gets_fields_to_add() -> None:
    """An admitted request gets the limits' fields for the application's answer, and nothing that would change it."""
    verdict = Verdict((Limit("x", "5/s"),), (Admitted(4, SECOND // 5, SECOND // 5),), True, NOW)
    assert respond(verdict, accept="text/html") == Response(
        200, (("RateLimit-Policy", '"x";q=5;w=1'), ("RateLimit", '"x";r=4;t=1')), b""
    )
    assert header(respond(verdict, cors=True), "access-control-expose-headers") == "RateLimit-Policy, RateLimit"
    assert respond(verdict, dialects="none", cors=True).headers == ()


@pytest.mark.parametrize("accept", [None, "text/plain", "text/html"])
@pytest.mark.parametrize("method", ["HEAD", "head"])
def test_head_has_the_fields_of_get_and_no_body(accept: str | None, method: str) -> None:
    """HEAD gets exactly the fields that GET gets, the length included, and no body."""
    get, head = respond(REFUSED, accept=accept), respond(REFUSED, accept=accept, method=method)
    assert head == Response(get.status, get.headers, b"")
    assert get.body


def test_plain_text_is_the_sentence() -> None:
    """Plain text is the sentence and a line's end, in UTF-8 and in the reader's language."""
    answer = respond(REFUSED, accept="text/plain", accept_language="ja;q=0.9, it")
    assert answer.body.decode() == "この電話番号に対するリクエストが多すぎます。4分後にもう一度お試しください。\n"
    assert header(answer, "content-language") == "ja"
    assert header(answer, "content-length") == str(len(answer.body))
    with pytest.raises(ValueError, match="expected application/problem"):
        read_problem(answer)


def test_cors_exposes_what_is_sent() -> None:
    """With CORS the limits' fields and Retry-After are exposed, in one field."""
    answer = respond(REFUSED, cors=True, dialects=("draft11", "x-ratelimit-delta"))
    assert header(answer, "access-control-expose-headers") == (
        "RateLimit-Policy, RateLimit, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After"
    )


def test_a_text_of_its_own_never_reaches_a_header() -> None:
    """A limit's own text, whatever is in it, is in the body only, and every header is one line of ASCII."""
    text = 'Sorry: a=b; <script>alert("x")</script> é ☎'
    verdict = one_refusal(SECOND, Limit("x", "5 per day", by="phone", text=text))
    for accept in ("text/html", "text/plain", "*/*"):
        answer = respond(verdict, accept=accept, cors=True)
        for name, value in answer.headers:
            assert (name + value).isascii() and (name + value).isprintable()
            assert "Sorry" not in value
        assert b"Sorry" in answer.body
        assert header(answer, "content-length") == str(len(answer.body))


class Page(HTMLParser):
    """What is in a page: tags with their attributes, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.tags[-1][0], data))


def page(verdict: Verdict = REFUSED, language: str = "en") -> Page:
    """The HTML page for a refusal."""
    return Page(respond(verdict, accept="text/html", accept_language=language).body.decode())


def test_the_page_says_it_without_a_script() -> None:
    """The page has its language, one heading, and the sentence in a polite status, readable with no script at all."""
    found = page(language="de")
    assert ("html", {"lang": "de"}) in found.tags
    assert [tag for tag, _ in found.tags].count("h1") == 1
    sentence = "Zu viele Anfragen für diese Telefonnummer. Versuchen Sie es in 4 Minuten erneut."
    assert ("p", sentence) in found.texts
    status = next(attributes for _, attributes in found.tags if attributes.get("id") == "status")
    assert (status["role"], status["aria-live"]) == ("status", "polite")
    left = next(attributes for _, attributes in found.tags if attributes.get("id") == "left")
    assert left["aria-hidden"] == "true" and "hidden" in left


def test_the_page_loads_nothing_and_never_reloads_itself() -> None:
    """Nothing is loaded from elsewhere, and no meta refresh takes the page away from a slow reader."""
    found = page()
    for tag, attributes in found.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attributes
        assert attributes.get("href") in (None, "")
        assert (attributes.get("http-equiv") or "").lower() != "refresh"
    style = next(text for tag, text in found.texts if tag == "style")
    assert "prefers-color-scheme:dark" in style
    assert "url(" not in style and "@import" not in style


def test_the_page_runs_its_own_script_only() -> None:
    """The page's policy allows exactly the style and the script that are in it."""
    answer = respond(REFUSED, accept="text/html")
    policy = header(answer, "content-security-policy") or ""
    text = answer.body.decode()
    for opening, closing, directive in (("<style>", "</style>", "style-src"), ("<script>", "</script>", "script-src")):
        inner = text.split(opening)[1].split(closing)[0]
        assert f"{directive} 'sha256-{b64encode(sha256(inner.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "text",
    ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "<!--<script ", "</script ", "&lt;"],
)
def test_whatever_a_text_says_is_escaped(text: str) -> None:
    """A limit's own text is text on the page, never markup, and is read back unchanged."""
    verdict = one_refusal(HOUR, Limit("x", "5 per day", by="phone", text=text + " {wait}"))
    found = page(verdict)
    assert [tag for tag, _ in found.tags] == [tag for tag, _ in page().tags]
    answer = respond(verdict, accept="text/html")
    assert "<" not in answer.body.decode().split('id="problem">')[1].split("</script>\n")[0]
    assert read_problem(answer).detail == f"{text} in 60 minutes"


def test_no_countdown_where_waiting_does_not_help() -> None:
    """A page for what can never pass has no countdown and no link to try again."""
    verdict = Verdict((Limit("x", "5/s"),), (Never(5, 5, 0, 0),), False, NOW, None, (9,))
    ids = {attributes.get("id") for _, attributes in page(verdict).tags}
    assert not ids & {"left", "again"}
    assert {"left", "again"} <= {attributes.get("id") for _, attributes in page().tags}


def test_another_page_is_not_taken_for_ours() -> None:
    """A page without a problem document, or with another's, is an error."""
    html = (("Content-Type", "text/html"),)
    with pytest.raises(ValueError, match="carries no problem document"):
        read_problem(Response(429, html, b"<p>Too many requests</p><script id=other>{}</script>"))
    with pytest.raises(ValueError, match="violated-policies"):
        read_problem(Response(429, html, b'<script id="problem">{}</script>'))
