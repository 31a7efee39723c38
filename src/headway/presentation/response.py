"""The whole HTTP answer to a request: status, fields and body. Adapters, the service and the CLI only carry it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.core.verdict import Verdict
from headway.presentation.fields import DEFAULT_DIALECTS, Fields, expose, fields

if TYPE_CHECKING:
    from headway.presentation.problem import Problem

__all__ = ["Response", "read_problem", "respond"]


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer, ready to be sent.

    Attributes:
        status: 200 for an admitted request (the application's own status counts then), else 429, 422, 403 or 503.
        headers: (name, value), each name once. For an admitted request, what is to be added to the application's.
        body: empty for an admitted request and for HEAD.
    """

    status: int
    headers: Fields
    body: bytes


def respond(
    verdict: Verdict,
    *,
    accept: str | None = None,
    accept_language: str | None = None,
    method: str = "GET",
    dialects: str | Iterable[str] = DEFAULT_DIALECTS,
    partition_keys: Sequence[bytes | None] = (),
    cors: bool = False,
    locale: str = "en",
    zone: str | None = None,
) -> Response:
    """Build the answer.

    Args:
        verdict: the decision's facts.
        accept: the request's ``Accept``: problem+json (the default), plain text or an HTML page.
        accept_language: the request's ``Accept-Language``.
        method: the request's; HEAD gets the fields of GET and no body.
        dialects: see ``fields``.
        partition_keys: see ``fields``.
        cors: name the fields in ``Access-Control-Expose-Headers``.
        locale: the language where ``accept_language`` names none that is shipped.
        zone: see ``sentence``.

    Raises:
        ConfigError: dialects that are unknown or exclude each other.
        LimitError: ``partition_keys`` that are not one for each limit.
    """
    sent = fields(verdict, dialects, partition_keys=partition_keys)
    if verdict.allowed:
        return Response(200, (*sent, expose(sent)) if cors and sent else sent, b"")
    # What only a refusal needs is loaded when there is one: most requests pass.
    from headway.presentation.accept import PROBLEM, choose_form
    from headway.presentation.language import choose
    from headway.presentation.problem import Problem

    tongue = choose(accept_language, locale)
    found = Problem.of(verdict, tongue, zone=zone)
    form = choose_form(accept)
    body, extra = _body(found, form, tongue)
    headers = (
        *sent,
        *((expose(sent),) if cors and sent else ()),
        ("Cache-Control", "no-store"),
        ("Content-Type", form if form == PROBLEM else f"{form}; charset=utf-8"),
        ("Content-Language", tongue),
        ("Content-Length", str(len(body))),
        ("Vary", "Accept, Accept-Language"),
        ("X-Content-Type-Options", "nosniff"),
        *extra,
    )
    return Response(found.status, headers, b"" if method.upper() == "HEAD" else body)


def _body(found: Problem, form: str, locale: str) -> tuple[bytes, Fields]:
    from headway.presentation.accept import HTML, PLAIN

    if form == PLAIN:
        return f"{found.detail}\n".encode("utf-8", "replace"), ()
    if form == HTML:
        from headway.presentation.page import page, page_security

        return page(found, locale).encode("utf-8", "replace"), page_security()
    import json

    text = json.dumps(found.document(), ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "replace"), ()


def read_problem(response: Response) -> Problem:
    """The problem that a JSON or HTML answer carries; a plain text one carries only the sentence (see ``hear``).

    Raises:
        ValueError: another media type, or a body that is not what headway renders.
    """
    from headway.presentation.accept import HTML, PROBLEM
    from headway.presentation.problem import Problem

    kind = next((value for name, value in response.headers if name.lower() == "content-type"), "")
    media_type = kind.split(";", 1)[0].strip().lower()
    if media_type == PROBLEM:
        import json

        return Problem.read(json.loads(response.body))
    if media_type == HTML:
        from headway.presentation.page import read_page

        return read_page(response.body.decode())
    raise ValueError(f"the answer is {kind!r}; expected {PROBLEM} or {HTML}")
