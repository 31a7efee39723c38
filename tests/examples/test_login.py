"""The login, tried over HTTP at the real application on a SQLite store."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from example_site import client, serving
from examples.login.app import Settings, create_app
from examples.login.users import Users

from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing import ManualClock

OWNER, STRANGER = "192.0.2.10", "203.0.113.66"
RIGHT = "correct horse"


@dataclass
class Site:
    """The running application."""

    clock: ManualClock
    address: str
    http: httpx.Client
    folder: Path

    def login(
        self, password: str = RIGHT, name: str = "owner", ip: str = OWNER, device: str | None = None
    ) -> httpx.Response:
        """Log in from somewhere; without a cookie unless it is given."""
        self.http.cookies.clear()
        headers = {"x-forwarded-for": ip, **({} if device is None else {"cookie": f"device={device}"})}
        return self.http.post("/login", json={"name": name, "password": password}, headers=headers)

    def fail(self, times: int, **who: Any) -> list[int]:
        return [self.login("guess", **who).status_code for _ in range(times)]


@pytest.fixture
def site(tmp_path: Path, clock: ManualClock) -> Iterator[Site]:
    store = ThreadedStore(SqliteStore(tmp_path / "limits.db", clock=clock))
    users = Users(tmp_path / "users.db", work=2)
    users.add("owner", RIGHT)
    settings = Settings(store, users, b"sixteen bytes or more", "127.0.0.1", secure_cookies=False)
    with serving(create_app(settings)) as address, client(address) as http:
        yield Site(clock, address, http, tmp_path)
    store.store.close()


def test_only_failures_count(site: Site) -> None:
    """Right passwords are never limited, however many."""
    assert [site.login().status_code for _ in range(12)] == [200] * 12


def test_waits_grow_and_a_refusal_says_how_long(site: Site) -> None:
    """After five failures the next guess waits 30 s, then 60 s, 120 s … up to an hour; a refused one adds nothing."""
    assert site.fail(5) == [403] * 5
    for wait in (30, 60, 120, 240, 480, 960, 1920, 3600, 3600):
        refused = site.login()  # the right password has to wait too, or guessing would go on
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(wait))
        assert refused.json()["retry_after_ms"] == wait * 1000
        site.clock.advance(wait - 1)
        assert site.login().headers["retry-after"] == "1"
        site.clock.advance(1)
        assert site.fail(1) == [403]


def test_a_success_clears_the_place(site: Site) -> None:
    """After a success the failures before it are forgotten: five more are free again."""
    assert site.fail(4) == [403] * 4
    assert site.login().status_code == 200
    assert site.fail(6) == [403] * 5 + [429]


def test_a_strangers_failures_do_not_lock_the_owner_out(site: Site) -> None:
    """Somebody who fails on an account until refused locks it for themselves only."""
    assert site.fail(8, ip=STRANGER) == [403] * 5 + [429] * 3
    assert site.login().status_code == 200
    assert site.login(ip=STRANGER).status_code == 429


def test_many_strangers_do_not_lock_a_known_device_out(site: Site) -> None:
    """When a hundred failures from everywhere have closed an account to strangers, its owner's device gets in."""
    device = site.login().cookies["device"]
    for n in range(20):
        assert site.fail(5, ip=f"198.51.100.{n}") == [403] * 5
    assert site.login("guess", ip="198.51.100.99").json()["limit"] == "account"
    assert site.login(ip="198.51.100.99").status_code == 429
    assert site.login(device=device).status_code == 200
    assert site.login(device=device, ip=STRANGER).status_code == 200


def test_an_address_that_failed_a_lot_does_not_lock_its_neighbours_devices_out(site: Site) -> None:
    """Behind one address, a guesser's failures do not touch a device that is known."""
    device = site.login().cookies["device"]
    for n in range(50):
        site.fail(1, name=f"name-{n}")
    assert site.login("guess", name="another").json()["limit"] == "address"
    assert site.login(device=device).status_code == 200


def test_an_address_is_limited_over_all_accounts(site: Site) -> None:
    """Fifty failures an hour from one address, whatever the names; the address of an IPv6 network is one."""
    found = [site.login("guess", name=f"n{n}", ip=f"2001:db8::{n:x}").status_code for n in range(52)]
    assert found == [403] * 50 + [429] * 2
    assert site.login("guess", name="n", ip="2001:db8:0:1::1").status_code == 403


def test_a_known_device_is_limited_too(site: Site) -> None:
    """Whoever has the device meets the growing wait; its cookie is nobody else's, and cannot be made up."""
    device = site.login().cookies["device"]
    found = [site.login("guess", device=device, ip=f"198.51.100.{n}").status_code for n in range(7)]
    assert found == [403] * 5 + [429] * 2
    found = [site.login("guess", device=f"{n:032}.{'0' * 64}", ip=STRANGER).status_code for n in range(6)]
    assert found == [403] * 5 + [429]
    assert [site.login("guess", name="b", device=device, ip=STRANGER).status_code for _ in range(6)][-1] == 429


def test_an_account_that_is_not_there_is_answered_the_same(site: Site) -> None:
    """Nothing in the answers to guesses tells whether the account exists: status, body, fields, refusals and waits."""
    there, nowhere = (
        [site.login("guess", name=name, ip=ip) for _ in range(7)]
        for name, ip in (("owner", OWNER), ("nobody", STRANGER))
    )
    for one, other in zip(there, nowhere, strict=True):
        assert (one.status_code, one.content) == (other.status_code, other.content)
        assert _fields(one) == _fields(other)


def test_an_account_that_is_not_there_has_no_password(site: Site) -> None:
    """No password, not even an empty one, is right for an account that does not exist."""
    for password in ("", "guess", "\0" * 16):
        assert site.login(password, name="nobody").status_code == 403


def test_one_account_is_one_however_its_name_is_spelled(site: Site) -> None:
    """Case, width and spaces around a name make no further counters."""
    names = ["owner", "OWNER", " Owner ", "ｏｗｎｅｒ", "oWnEr", "owner"]
    assert [site.login("guess", name=name).status_code for name in names] == [403] * 5 + [429]


def test_parallel_guesses_are_not_free(site: Site) -> None:
    """Of twenty guesses at the same time exactly five are looked at."""

    def guess(_: int) -> int:
        with client(site.address) as http:
            body = {"name": "owner", "password": "guess"}
            return http.post("/login", json=body, headers={"x-forwarded-for": STRANGER}).status_code

    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(guess, range(20)))
    assert found == [403] * 5 + [429] * 15


def test_a_person_gets_a_page(site: Site) -> None:
    """A wrong password is told next to the form; a refusal is a page that says when to try again."""
    form = {"name": '"><b>', "password": "guess"}
    for _ in range(5):
        answer = site.http.post("/login", data=form, headers={"accept": "text/html"})
        assert (answer.status_code, "The name or the password is wrong." in answer.text) == (403, True)
        assert "<b>" not in answer.text
    refused = site.http.post("/login", data=form, headers={"accept": "text/html"})
    assert refused.status_code == 429
    assert "Too many wrong passwords. Try again in 30 seconds." in refused.text


def test_no_name_and_no_address_is_in_the_limits_database(site: Site) -> None:
    """The limits' database holds keyed hashes only."""
    site.fail(3, name="somebody", ip=STRANGER)
    for path in site.folder.glob("limits.db*"):
        held = path.read_bytes()
        assert not [secret for secret in (b"somebody", STRANGER.encode(), b"203.0") if secret in held]


def _fields(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "date"}
