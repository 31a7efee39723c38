"""Subscription tiers, used over HTTP at the real application on a SQLite store, and changed while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from example_site import client, serving
from examples.tiers.accounts import Accounts
from examples.tiers.app import Settings, create_app
from examples.tiers.limits import PLANS

from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing import ManualClock

MIDNIGHT = datetime.fromisoformat("2027-01-16T00:00:00+00:00").timestamp()


@dataclass
class Site:
    """The running application; a second passes before each request, so that the pace is no matter."""

    clock: ManualClock
    http: httpx.Client

    def get(self, key: str = "key-1", path: str = "/items", pause: float = 1) -> httpx.Response:
        self.clock.advance(pause)
        return self.http.get(path, headers={"x-api-key": key})

    def use(self, times: int, key: str = "key-1") -> list[int]:
        return [self.get(key).status_code for _ in range(times)]

    def put(self, path: str, token: str = "token", **values: Any) -> httpx.Response:
        return self.http.put(path, json=values, headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def site(tmp_path: Path, clock: ManualClock) -> Iterator[Site]:
    accounts = Accounts(tmp_path / "accounts.db")
    for plan, daily in PLANS.items():
        accounts.set_plan(plan, daily)
    accounts.add("key-1", "free")
    accounts.add("key-2", "free")
    store = ThreadedStore(SqliteStore(tmp_path / "limits.db", clock=clock))
    with serving(create_app(Settings(store, accounts, "token"))) as address, client(address) as http:
        yield Site(clock, http)
    store.store.close()


def test_each_plan_has_its_quota(site: Site) -> None:
    """An account on the free plan has ten requests a day and another account its own ten; midnight brings them back."""
    assert site.use(11) == [200] * 10 + [429]
    refused = site.get().json()
    assert (refused["limit"], refused["retry_at"]) == ("daily", "2027-01-16T00:00:00.000+00:00")
    assert site.use(11, "key-2") == [200] * 10 + [429]
    site.clock.set(MIDNIGHT)
    assert site.use(1) == [200]


def test_an_upgrade_counts_at_once_and_keeps_what_was_used(site: Site) -> None:
    """After an upgrade the new quota less what was used is left; after a downgrade nothing, and never less."""
    site.use(11)
    assert site.put("/accounts/1", plan="pro").status_code == 200
    answer = site.get()
    assert answer.status_code == 200
    assert '"daily";r=989' in answer.headers["ratelimit"]
    assert site.put("/accounts/1", plan="free").status_code == 200
    refused = site.get()
    assert refused.status_code == 429
    assert '"daily";r=0' in refused.headers["ratelimit"]
    assert site.put("/accounts/1", plan="pro").status_code == 200
    assert '"daily";r=988' in site.get().headers["ratelimit"]


def test_an_override_is_for_one_account(site: Site) -> None:
    """An account's own quota comes before its plan's, keeps what was used, and can be taken away again."""
    site.use(10)
    site.use(10, "key-2")
    site.put("/accounts/1", override="12 per day in UTC")
    assert site.use(3) == [200, 200, 429]
    assert site.use(1, "key-2") == [429]
    site.put("/accounts/1", override="")
    assert site.use(1) == [429]
    site.put("/accounts/1", override="unlimited")
    assert site.use(3) == [200] * 3
    site.put("/accounts/1", override="block")
    assert site.use(1) == [403]


def test_a_plan_is_changed_for_everybody_on_it(site: Site) -> None:
    """Another quota of a plan counts with the next request of each of its accounts."""
    site.use(8)
    site.use(3, "key-2")
    site.put("/plans/free", daily="9 per day in UTC")
    assert site.use(2) == [200, 429]
    assert '"daily";r=5' in site.get("key-2").headers["ratelimit"]


def test_a_suspended_account_is_blocked(site: Site) -> None:
    """On a plan that is blocked the answer is 403 without a time to come back, and everything is as before afterwards."""
    site.use(4)
    site.put("/accounts/1", plan="suspended")
    refused = site.get()
    assert refused.status_code == 403
    assert "retry-after" not in refused.headers
    site.put("/accounts/1", plan="free")
    assert '"daily";r=5' in site.get().headers["ratelimit"]


def test_the_plan_decides_the_pace(site: Site) -> None:
    """Requests at once are limited by the plan's pace, and a request that the pace refuses spends nothing of the day."""
    found = [site.get(pause=0).status_code for _ in range(7)]
    assert found == [200] * 5 + [429] * 2
    assert site.get(pause=0).json()["limit"] == "pace"
    assert '"daily";r=4' in site.get().headers["ratelimit"]


def test_whoever_has_no_key_is_counted_by_address(site: Site) -> None:
    """A request without a valid key is refused by the application five times a day, whatever keys it makes up."""
    found = [site.get(f"made-up-{n}").status_code for n in range(7)]
    assert found == [401] * 5 + [429] * 2
    assert site.use(1) == [200]


def test_a_wrong_quota_is_not_stored(site: Site) -> None:
    """A quota that cannot be right is refused with the reason, and the account's stays as it is."""
    for wrong in ("many per day", "10 per fortnight in UTC", "100 per minute", 7):
        answer = site.put("/accounts/1", override=wrong)
        assert (answer.status_code, bool(answer.json()["detail"])) == (422, True)
    assert site.use(1) == [200]
    assert site.put("/accounts/1", token="guess", plan="pro").status_code == 401
    assert site.put("/accounts/99", plan="pro").status_code == 404


def test_the_administrator_is_not_limited(site: Site) -> None:
    """The administrator's addresses are neither counted nor refused."""
    assert [site.put("/accounts/1", plan="free").status_code for _ in range(12)] == [200] * 12
    assert site.use(1) == [200]
