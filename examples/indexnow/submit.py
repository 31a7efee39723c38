"""Submit URLs to IndexNow, and tell the 403 of a key that is still fresh from the 403 of a key that is wrong.

    python submit.py --host www.example.com --key 0123456789abcdef --fresh urls.txt

A key that was just published is refused with 403 until the search engine has fetched its file. With ``--fresh`` such a
refusal is tried again a few times; without it, or where the answer says that the key is wrong, it is final at once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import httpx

from headway.client import Rejection
from headway.client.retry import Retry
from headway.client.transport_httpx import PatientTransport
from headway.errors import RateLimitedError

API = "https://api.indexnow.org/indexnow"
WRONG = ("UserForbiddedToAccessSite", "InvalidKey")
"""Codes of refusals that no wait lifts (the first is spelled as it is sent)."""


def retry(*, fresh: bool, deadline: float) -> Retry:
    """A minute or more between attempts for a key that is being verified; one attempt for a key that ought to work."""
    if not fresh:
        return Retry(deadline=deadline, ambiguous=0)
    return Retry(deadline=deadline, ambiguous=4, may_pass=may_pass, floor=60, first=120, longest=600)


def may_pass(status: int, rejection: Rejection) -> bool:
    """A 403 may pass while the key is fresh, unless the answer says that the key is wrong."""
    return status == 403 and not any(code in text(rejection.body) for code in WRONG)


def submit(client: httpx.Client, api: str, host: str, key: str, urls: list[str]) -> httpx.Response:
    """Send one batch, at most 10,000 URLs.

    Raises:
        RateLimitedError: refused until now; its body says why.
    """
    return client.post(api, json={"host": host, "key": key, "urlList": urls})


def explain(status: int, body: str, *, fresh: bool) -> str:
    """What a final answer means for whoever runs this."""
    if status in (200, 202):
        return "accepted" if status == 200 else "accepted; the key is being verified"
    if status == 403 and (any(code in body for code in WRONG) or not fresh):
        return f"the key is wrong: is it in the key file of this host? {body}"
    if status == 403:
        return f"the key is still not verified; try again later: {body}"
    return f"refused with {status}: {body}"


def main(arguments: list[str] | None = None, **options: Any) -> int:
    """Submit; 0 accepted, 75 try again later, 77 the key is wrong, 1 anything else.

    Args:
        arguments: the command line's.
        options: for the transport (tests give it a clock).
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("urls", type=Path, help="a file with a URL a line")
    parser.add_argument("--host", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--fresh", action="store_true", help="the key was published within the last hours")
    parser.add_argument("--deadline", type=float, default=3600, help="seconds, all waits together")
    parser.add_argument("--api", default=API)
    args = parser.parse_args(arguments)
    urls = args.urls.read_text().split()
    transport = PatientTransport(retry=retry(fresh=args.fresh, deadline=args.deadline), **options)
    try:
        with httpx.Client(transport=transport, timeout=30) as client:
            answer = submit(client, args.api, args.host, args.key, urls)
    except RateLimitedError as error:
        status, body = error.history[-1].status or 0, text(error.body)
        print(f"{explain(status, body, fresh=args.fresh)} (attempts: {len(error.history)})", file=sys.stderr)
        return 75 if args.fresh or status != 403 else 77
    print(explain(answer.status_code, answer.text, fresh=args.fresh), file=sys.stderr)
    if answer.status_code == 403:
        return 77
    return 0 if answer.is_success else 1


def text(body: object) -> str:
    """A body as text, whatever it is."""
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")


if __name__ == "__main__":
    sys.exit(main())
