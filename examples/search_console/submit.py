"""Submit URLs where only eleven a day and property are accepted, on Pacific days, with a plan of what goes when.

    python submit.py --property sc-domain:example.com --budget budget.db urls.txt

What fits today is sent; the plan says which URL goes on which day; run it again every day (a URL that was accepted is
taken off the file). Every script that uses the same budget file shares the eleven.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import requests

from headway.client.pace import Pace
from headway.client.retry import Retry
from headway.client.transport_requests import patient
from headway.errors import DeadlineTooSoon, RateLimitedError
from headway.stores.clock import wall_clock
from headway.stores.sqlite import SqliteStore

PACIFIC = ZoneInfo("America/Los_Angeles")
A_DAY = 11
API = "https://indexing.example.com/v3/urlNotifications:publish"


def plan(urls: Iterable[str], left_today: int, today: date) -> Iterator[tuple[date, str]]:
    """Which URL goes on which Pacific day: what is left of today first, then eleven a day.

    Args:
        urls: in the order in which they go.
        left_today: how many may still go today.
        today: the Pacific date.
    """
    day, left = today, left_today
    for url in urls:
        while not left:
            day, left = day + timedelta(days=1), A_DAY
        left -= 1
        yield day, url


def submit(session: requests.Session, api: str, url: str) -> None:
    """Tell the service about one URL.

    Raises:
        RateLimitedError: the service's own quota is spent, whatever our budget says.
        requests.HTTPError: it does not accept the URL.
    """
    answer = session.post(api, json={"url": url, "type": "URL_UPDATED"}, timeout=30)
    answer.raise_for_status()


def main(arguments: list[str] | None = None, *, timer: Any = None) -> int:
    """Print the plan, send what fits today, keep the rest; 75 when something is left for another day.

    Args:
        arguments: the command line's.
        timer: how to wait (tests give it a clock).
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("urls", type=Path, help="a file with a URL a line; accepted ones are taken off it")
    parser.add_argument("--property", required=True, help="whose eleven a day these are")
    parser.add_argument("--budget", type=Path, default=Path("budget.db"), help="the file that shares the budget")
    parser.add_argument("--api", default=API, help="the service")
    parser.add_argument("--plan-only", action="store_true", help="say what would go when, and send nothing")
    args = parser.parse_args(arguments)
    waiting = [line.strip() for line in args.urls.read_text().splitlines() if line.strip()]
    store = SqliteStore(args.budget, clock=timer or wall_clock)
    today = datetime.fromtimestamp((timer or wall_clock)() / 1e9, PACIFIC).date()
    with (
        closing(store),
        Pace(f"{A_DAY}/day in {PACIFIC.key}", store=store, by="property", name="search-console") as pace,
    ):
        (left,) = pace.left(property=args.property).values()
        for day, url in plan(waiting, left, today):
            print(f"{day}  {url}")
        if args.plan_only:
            return 0
        # A refusal that says "tomorrow" pauses everybody who shares the budget; nobody sleeps until then in here.
        options = {"retry": Retry(deadline=60), "pace": pace, "timer": timer}
        options["attributes"] = lambda _: {"property": args.property}
        with patient(requests.Session(), **options) as session:
            while waiting:
                try:
                    submit(session, args.api, waiting[0])
                except (DeadlineTooSoon, RateLimitedError) as error:
                    print(f"{len(waiting)} URLs are left for another day. {error}", file=sys.stderr)
                    return 75
                del waiting[0]
                args.urls.write_text("".join(f"{url}\n" for url in waiting))
    return 0


if __name__ == "__main__":
    sys.exit(main())
