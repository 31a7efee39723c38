"""The one-time codes, asked for over HTTP from the real application on a SQLite store."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from example_site import client, serving
from examples.one_time_codes.app import Settings, create_app

from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing import ManualClock

PHONE = "+447700900123"
DAILY = 103
MIDNIGHT = datetime.fromisoformat("2027-01-16T00:00:00+00:00").timestamp()


@dataclass
class Site:
    """The running application, and what it has sent."""

    clock: ManualClock
    folder: Path
    sent: list[tuple[str, str, str]] = field(default_factory=list)
    broken: bool = False
    http: httpx.Client = field(default_factory=httpx.Client)

    def send(self, phone: str, code: str, channel: str) -> None:
        if self.broken:
            raise RuntimeError("the provider is down")
        self.sent.append((phone, code, channel))

    def ask(self, phone: str = PHONE, channel: str = "sms", ip: str = "203.0.113.7") -> httpx.Response:
        body = {"phone": phone, "channel": channel}
        return self.http.post("/codes", json=body, headers={"x-forwarded-for": ip})

    def check(self, code: str, phone: str = PHONE) -> int:
        return self.http.post("/codes/check", json={"phone": phone, "code": code}).status_code


@pytest.fixture
def site(tmp_path: Path, clock: ManualClock) -> Iterator[Site]:
    made = Site(clock, tmp_path)
    store = ThreadedStore(SqliteStore(tmp_path / "limits.db", clock=clock))
    settings = Settings(
        store=store,
        codes=tmp_path / "codes.db",
        secret_key=b"sixteen bytes or more",
        now=lambda: clock() / 1e9,
        send=made.send,
        daily=DAILY,
        trusted_proxies="127.0.0.1",
    )
    with serving(create_app(settings)) as address, client(address) as made.http:
        yield made
    store.store.close()


def test_a_code_is_sent_and_checked(site: Site) -> None:
    """A code that was sent is right once, another is wrong, and the answer says when the next may be asked for."""
    answer = site.ask()
    assert (answer.status_code, answer.json()) == (202, {"sent": "sms", "again_after_ms": 60_000})
    phone, code, channel = site.sent[0]
    assert (phone, channel) == (PHONE, "sms")
    assert site.check("000000" if code != "000000" else "000001") == 403
    assert site.check(code) == 200
    assert site.check(code) == 403


def test_the_resend_interval_is_exact(site: Site) -> None:
    """Within a minute no second code is sent; the refusal says how long, and then it is sent. Refused ones cost nothing."""
    site.ask()
    site.clock.advance(18)
    for _ in range(3):
        refused = site.ask()
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "42"
        problem = refused.json()
        assert (problem["limit"], problem["retry_after_ms"]) == ("resend", 42_000)
        assert problem["detail"] == "A code has just been sent to this phone. Try again in 42 seconds."
    site.clock.advance(41)
    assert site.ask().status_code == 429
    site.clock.advance(1)
    assert site.ask().status_code == 202
    assert len(site.sent) == 2


def test_a_phone_has_a_daily_cap_until_midnight_in_the_zone(site: Site) -> None:
    """The seventh code of a day is refused until the zone's midnight, which the refusal names, and not any longer."""
    assert _until_refused(site, apart=60) == 6
    refused = site.ask().json()
    assert refused["limit"] == "per-phone"
    assert datetime.fromisoformat(refused["retry_at"]).timestamp() == MIDNIGHT
    assert refused["detail"].endswith("Try again tomorrow at 00:00 (Europe/London).")
    site.clock.set(MIDNIGHT)
    assert site.ask().status_code == 202


def test_a_call_costs_as_much_as_three_messages(site: Site) -> None:
    """Two voice calls spend what six messages do, and a call that does not fit leaves room for messages."""
    assert site.ask(channel="voice").status_code == 202
    for _ in range(2):
        site.clock.advance(60)
        assert site.ask().status_code == 202
    site.clock.advance(60)
    assert site.ask(channel="voice").json()["limit"] == "per-phone"
    assert site.ask().status_code == 202
    assert [channel for _, _, channel in site.sent] == ["voice", "sms", "sms", "sms"]


def test_an_address_has_a_daily_cap(site: Site) -> None:
    """Thirty codes for as many phones from one address, not one more; another address goes on."""
    phones = [f"+4477009{n:02d}000" for n in range(32)]
    assert [site.ask(phone).status_code for phone in phones[:30]] == [202] * 30
    assert site.ask(phones[30]).json()["limit"] == "per-address"
    assert site.ask(phones[30], ip="203.0.113.8").status_code == 202


def test_neighbouring_numbers_have_a_daily_cap(site: Site) -> None:
    """A hundred codes for numbers of one block, from as many addresses, not one more; other blocks go on."""
    found = [site.ask(f"+447700900{n:03d}", ip=f"198.51.100.{n}").status_code for n in range(100)]
    assert found == [202] * 100
    assert site.ask("+447700900100", ip="198.51.100.100").json()["limit"] == "per-prefix"
    assert site.ask("+442079460000", ip="198.51.100.100").status_code == 202


def test_all_phones_together_have_a_daily_cap(site: Site) -> None:
    """The day's last unit is the last, whoever asks: calls spend three at a time, and what is left goes on as messages."""
    for n in range(DAILY // 3):
        answer = site.ask(f"+44{2000000 + n * 10001}0", "voice", ip=f"198.51.100.{n}")
        assert answer.status_code == 202, answer.text
    assert site.ask(PHONE, "voice").json()["limit"] == "everyone"
    assert site.ask(PHONE).status_code == 202
    refused = site.ask("+442079460000").json()
    assert refused["limit"] == "everyone"
    assert refused["detail"].startswith("No more codes can be sent today. Try again tomorrow at 00:00")


def test_what_cannot_be_sent_costs_nothing(site: Site) -> None:
    """A number that is none, a country that is not served, and a provider that is down leave every limit as it was."""
    assert site.ask("12").status_code == 400
    assert site.ask("+12025550123").json()["detail"].startswith("We can send codes to numbers that begin with +44")
    site.broken = True
    assert site.ask().status_code == 502
    site.broken = False
    assert site.ask().status_code == 202
    assert site.ask().json()["retry_after_ms"] == 60_000


def test_a_number_is_one_phone_however_it_is_spelled(site: Site) -> None:
    """Spaces, hyphens, brackets and a leading 00 make no other phone of it."""
    assert site.ask("+44 7700 900123").status_code == 202
    for spelled in ("0044 7700-900 123", "+44 (7700) 900.123", "+447700900123"):
        assert site.ask(spelled).status_code == 429


def test_wrong_codes_are_counted_and_right_ones_are_not(site: Site) -> None:
    """A code survives five wrong guesses, a phone ten an hour; right codes are not counted."""
    wrong = "x"
    for _ in range(3):
        site.ask()
        assert site.check(site.sent[-1][1]) == 200
        site.clock.advance(60)
    site.ask()
    assert [site.check(wrong) for _ in range(5)] == [403] * 5
    assert site.check(site.sent[-1][1]) == 403  # the sixth: the code is used up
    assert [site.check(wrong) for _ in range(4)] == [403] * 4
    site.clock.advance(60)
    site.ask()
    assert site.check(site.sent[-1][1]) == 429
    site.clock.advance(360)
    assert site.check(site.sent[-1][1]) == 200


def test_a_code_ends_after_ten_minutes(site: Site) -> None:
    """A right code is wrong once its time is over."""
    site.ask()
    site.clock.advance(600)
    assert site.check(site.sent[0][1]) == 403


def test_without_the_store_nothing_is_sent(site: Site) -> None:
    """When the counters cannot be read, the answer is 503 with a time to come back, and no message is paid for."""
    site.ask()
    for path in site.folder.glob("limits.db*"):
        path.unlink()
    (site.folder / "limits.db").write_bytes(b"no database any more" * 1000)
    site.clock.advance(60)
    refused = site.ask()
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["type"].endswith("temporary-reduced-capacity")
    page = site.http.post("/codes", data={"phone": PHONE}, headers={"accept": "text/html"})
    assert page.status_code == 503
    assert "Try again in" in page.text
    assert len(site.sent) == 1


def test_no_phone_is_in_the_databases(site: Site) -> None:
    """Neither the databases nor their journals hold a phone, its prefix, an address, or a code."""
    site.ask()
    site.check("wrong")
    code = site.sent[0][1]
    files = [path for path in site.folder.iterdir() if path.is_file()]
    assert {"limits.db", "codes.db"} <= {path.name for path in files}
    for path in files:
        held = path.read_bytes()
        for secret in (PHONE[1:], "7700900123", "900123", "447700", "203.0.113", code):
            assert secret.encode() not in held, f"{path.name} holds {secret}"


def test_the_page_tells_the_person_when(site: Site) -> None:
    """A person's refusal is a page with the sentence, a countdown in ms, the number still filled in, and the fields."""
    first = site.http.post("/codes", data={"phone": PHONE, "channel": "sms"}, headers={"accept": "text/html"})
    assert first.status_code == 200
    assert "Nothing came? Try again in 60 seconds." in first.text
    site.clock.advance(0.5)
    refused = site.http.post("/codes", data={"phone": PHONE, "channel": "voice"}, headers={"accept": "text/html"})
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    assert 'data-ms="59500"' in refused.text
    assert "Try again in 60 seconds." in refused.text
    found = _Elements(refused.text)
    assert found.one("input", id="phone")["value"] == PHONE
    assert "checked" in found.one("input", id="voice")
    assert found.one("div", id="note")["role"] == "alert"


def test_the_pages_are_accessible_and_load_nothing_foreign(site: Site) -> None:
    """Every field has a label, errors belong to their field, one language and title; nothing comes from elsewhere."""
    html = {"accept": "text/html"}
    site_pages = [
        site.http.get("/", headers=html),
        site.http.post("/codes", data={"phone": '"><script>alert(1)</script>'}, headers=html),
        site.http.post("/codes", data={"phone": PHONE}, headers=html),
        site.http.post("/codes/check", data={"phone": PHONE, "code": "x"}, headers=html),
    ]
    for answer in site_pages:
        assert "<script>alert" not in answer.text
        found = _Elements(answer.text)
        assert found.one("html")["lang"] == "en"
        assert len(found.all("h1")) == len(found.all("title")) == 1
        labels = {element["for"] for element in found.all("label")}
        for element in found.all("input"):
            assert element["type"] == "hidden" or element["id"] in labels
            for described in element.get("aria-describedby", "").split():
                assert found.one(id=described)
        for element in found.all():
            for name in ("src", "href"):
                assert not re.match(r"\w+:|//", element.get(name, ""))
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert _Elements(site_pages[1].text).one("input", id="phone")["aria-invalid"] == "true"


def test_it_runs_as_the_readme_says(tmp_path: Path) -> None:
    """``python -m examples.one_time_codes`` serves the page from a clean folder."""
    root = Path(__file__).parents[2]
    code = (
        "import examples.one_time_codes.__main__ as example, uvicorn\n"
        "uvicorn.run = lambda app, **options: print(sorted(route.path for route in app.routes), options['host'])\n"
        "example.main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.endswith("'/style.css'] 127.0.0.1\n"), ran.stderr
    assert (tmp_path / "one-time-codes/secret-key").stat().st_mode & 0o777 == 0o600


def _until_refused(site: Site, *, apart: float) -> int:
    """How many codes are sent, that many seconds apart, until one is refused."""
    count = 0
    while site.ask().status_code == 202:
        count += 1
        site.clock.advance(apart)
    return count


class _Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._found.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str | None = None, **attributes: str) -> list[dict[str, str]]:
        return [
            has
            for name, has in self._found
            if tag in (None, name) and all(has.get(key) == value for key, value in attributes.items())
        ]

    def one(self, tag: str | None = None, **attributes: str) -> dict[str, str]:
        (found,) = self.all(tag, **attributes)
        return found
