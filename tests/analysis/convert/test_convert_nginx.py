"""nginx's limit_req and limit_conn: converted, they decide as nginx does, the real one included."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.convert.policies import converted, limiter, limits, notes
from headway.errors import ConfigError
from headway.testing.clock import ManualClock
from nginx import nginx

ZONE = "limit_req_zone $binary_remote_addr zone=one:1m rate={rate};\nlimit_req_status 429;\n"
SITE = "server {{ listen PORT; location / {{ limit_req zone=one {options}; empty_gif; }} }}\n"


class Zone:
    """ngx_http_limit_req_module's arithmetic for one key: thousandths of requests, whole milliseconds; none of our code."""

    def __init__(self, per_second: int, burst: int, delay: int | None) -> None:
        self.rate = per_second * 1000
        self.burst = burst * 1000
        self.delay = burst * 1000 if delay is None else delay * 1000
        self.excess: int | None = None
        self.last = 0

    def ask(self, now_ms: int) -> float | None:
        """The delay in seconds of an admitted request; None for a refused one."""
        if self.excess is None:
            excess = 0
        else:
            excess = max(0, self.excess - self.rate * (now_ms - self.last) // 1000 + 1000)
            if excess > self.burst:
                return None
        self.excess, self.last = excess, now_ms
        return max(0.0, (excess - self.delay) / self.rate)


@pytest.mark.parametrize("seed", range(40))
def test_a_converted_zone_decides_as_nginx_would(seed: int) -> None:
    """Random rates, bursts and delays, random arrivals on whole milliseconds: the same admitted, and held back as long."""
    chance = random.Random(seed)
    rate, burst = chance.choice((1, 2, 5, 10, 100)), chance.choice((0, 1, 5, 20))
    delay = chance.choice((None, 0, 3))
    mode = "nodelay" if delay is None else f"delay={delay}" if delay else ""
    options = f"burst={burst} {mode}" if burst else mode
    clock = ManualClock()
    ours = limiter((ZONE + SITE).format(rate=f"{rate}r/s", options=options), clock)
    zone = Zone(rate, burst, delay)
    now = 0
    for _ in range(400):
        step = chance.choice((0, 0, 0, 1, 10, 100, 1000 // rate, 3000 // rate, 5000))
        now += step
        clock.advance(ns=step * 1_000_000)
        held, decision = zone.ask(now), ours.hit(address="192.0.2.1")
        assert decision.allowed == (held is not None)
        if held is not None:
            assert decision.delay == pytest.approx(held, abs=0.001)


@pytest.mark.parametrize(("options", "admitted"), [("", 1), ("burst=5 nodelay", 6), ("burst=5 delay=5", 6)])
def test_the_real_nginx_admits_as_many(options: str, admitted: int, tmp_path: Path) -> None:
    """Twelve requests at once to a real nginx, at a rate too slow to matter: as many pass as by the converted policy."""
    text = (ZONE + SITE).format(rate="1r/m", options=options)
    with nginx(text, tmp_path) as port, httpx.Client(trust_env=False) as client:
        seen = [client.get(f"http://127.0.0.1:{port}/").status_code for _ in range(12)]
    ours = limiter(text, ManualClock())
    mine = [200 if ours.hit(address="127.0.0.1").allowed else 429 for _ in range(12)]
    assert seen == mine == [200] * admitted + [429] * (12 - admitted)


EXCEPTIONS = """
geo $internal { default 0; 10.0.0.0/8 1; 10.9.0.0/16 0; }
map $http_x_key $key { default $http_x_key; "" ""; friend ""; }
limit_req_zone $key zone=keys:1m rate=1r/m;
limit_req_zone $server_name zone=site:1m rate=1r/m;
limit_req_status 429;
server {
    listen PORT;
    server_name site.example;
    location / { limit_req zone=keys burst=2 nodelay; empty_gif; }
    location /slow { limit_req zone=keys burst=2 nodelay; empty_gif; }
    location /free { empty_gif; }
    location = /one { limit_req zone=site; empty_gif; }
}
"""


def test_the_real_nginx_leaves_out_the_same_requests(tmp_path: Path) -> None:
    """Keys that a map empties, a zone that two places share, a place without a limit: as nginx."""
    chance = random.Random(11)
    asked = [
        (chance.choice(("/", "/slow", "/free", "/one")), chance.choice((None, "a", "b", "friend"))) for _ in range(80)
    ]
    seen = []
    with nginx(EXCEPTIONS, tmp_path) as port, httpx.Client(trust_env=False) as client:
        for path, key in asked:
            headers = {"X-Key": key} if key else {}
            seen.append(client.get(f"http://127.0.0.1:{port}{path}", headers=headers).status_code)
    ours = limiter(EXCEPTIONS, ManualClock())
    places = {
        "/": "site.example /",
        "/slow": "site.example /slow",
        "/free": "site.example /free",
        "/one": "site.example = /one",
    }
    mine = []
    for path, key in asked:
        given: dict[str, Any] = {"location": places[path], "host": "site.example"} | (
            {"http_x_key": key} if key else {}
        )
        mine.append(200 if ours.hit(given).allowed else 429)
    assert seen == mine
    assert {200, 429} == set(seen)


def test_addresses_that_a_geo_leaves_out() -> None:
    """Ranges that nest are told apart: the outer one is free, the inner one limited again."""
    text = """
    geo $internal { default 0; 10.0.0.0/8 1; 10.9.0.0/16 0; }
    map $internal $key { 0 $binary_remote_addr; 1 ""; }
    limit_req_zone $key zone=one:1m rate=1r/m;
    limit_req zone=one;
    """
    ours = limiter(text, ManualClock())
    for address, limited in (("192.0.2.1", True), ("10.1.2.3", False), ("10.9.2.3", True), ("10.255.0.1", False)):
        answers = [ours.hit(address=address).allowed for _ in range(2)]
        assert answers == [True, not limited]


def test_places_with_different_bursts_never_pass_more_than_the_largest(tmp_path: Path) -> None:
    """One zone with bursts of 2 and 0: no more than the largest burst passes in all, and it is said that it differs."""
    text = ZONE.format(rate="1r/m") + (
        "server { listen PORT; server_name s; location / { limit_req zone=one burst=2 nodelay; empty_gif; }\n"
        "location /slow { limit_req zone=one; empty_gif; } }"
    )
    paths = ["/", "/slow", "/", "/slow", "/", "/", "/slow"]
    with nginx(text, tmp_path) as port, httpx.Client(trust_env=False) as client:
        seen = [client.get(f"http://127.0.0.1:{port}{path}").status_code == 200 for path in paths]
    ours = limiter(text, ManualClock())
    mine = [ours.hit(address="127.0.0.1", location=f"s {path}").allowed for path in paths]
    assert sum(mine) <= 3
    assert sum(seen) == 3
    assert "share one counter" in notes(converted(text))


def test_connections_become_leases() -> None:
    """limit_conn is a number of requests at once, freed when they are given back."""
    text = "limit_conn_zone $binary_remote_addr zone=c:1m;\nlimit_conn_status 429;\nserver { limit_conn c 2; }\n"
    ours = limiter(text, ManualClock())
    first, second = ours.hit(address="a"), ours.hit(address="a")
    assert (first.allowed, second.allowed, ours.hit(address="a").allowed) == (True, True, False)
    ours.release(first)
    assert ours.hit(address="a").allowed
    assert "lease" in notes(converted(text))


def test_limits_are_inherited_all_or_none() -> None:
    """A place with its own limit_req has none of those around it; one without has all; limit_conn is apart."""
    text = """
    http {
        limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
        limit_req_zone $host zone=b:1m rate=5r/s;
        limit_conn_zone $host zone=c:1m;
        limit_req zone=a; limit_req zone=b burst=3 nodelay;
        server {
            server_name one;
            location /own { limit_req zone=b; }
            location /conn { limit_conn c 4; }
            location / { }
        }
        server { server_name two; }
    }
    """
    by_name = {limit["name"]: limit for limit in limits(converted(text))}
    assert by_name["a"]["when"]["location"]["is"] == ["one /conn", "one /", "two"]
    assert (by_name["b"]["quota"], by_name["b-0"]["quota"]) == ("5/s burst 4", "5/s burst 1")
    assert by_name["b"].keys() & {"when"} == set()
    assert by_name["b-0"]["when"]["location"]["is"] == ["one /own"]
    assert by_name["c"]["when"]["location"]["is"] == ["one /conn"]


def test_a_dump_of_several_files_is_one_configuration() -> None:
    """What nginx -T prints is taken apart, and includes are followed in it; errors name the file and the dump's line."""
    dump = (
        "# configuration file /etc/nginx/nginx.conf:\nhttp {\n  limit_req_zone $uri zone=z:1m rate=2r/s;\n  include conf.d/*.conf;\n}\n"
        "# configuration file /etc/nginx/conf.d/site.conf:\nserver {\n  limit_req zone=z;\n}\n"
    )
    assert limits(converted(dump))[0]["by"] == ["path"]
    with pytest.raises(ConfigError, match="semicolon") as caught:
        converted(dump.replace("zone=z;\n}", "zone=z\n}"))
    assert (caught.value.file, caught.value.line) == ("/etc/nginx/conf.d/site.conf", 8)


def test_what_is_not_exact_is_said() -> None:
    """Statuses, delays, a rate that nginx itself rounds, unread includes, computed keys, dry runs in some places."""
    text = """
    include other.conf;
    map $http_x $key { ~^a 1; default 2; }
    limit_req_zone $key zone=z:1m rate=100r/m;
    limit_req_zone $remote_user zone=unused:1m rate=1r/s;
    server {
        location /a { limit_req zone=z burst=5; limit_req_dry_run on; }
        location /b { limit_req zone=z burst=5; }
    }
    """
    found = converted(text)
    said = notes(found)
    for words in (
        "include other.conf",
        "worked out by a map",
        "1.666",
        "503",
        "holds requests",
        "used nowhere",
        "dry_run",
    ):
        assert words in said
    assert {note.line for note in found.notes if "include" in note.what} == {2}
    assert limits(found)[0]["by"] == ["key"]


def test_a_dry_run_is_a_shadow() -> None:
    """limit_req_dry_run on is a limit that is counted and not enforced."""
    text = ZONE.format(rate="1r/s") + "server { limit_req zone=one; limit_req_dry_run on; }"
    assert limits(converted(text))[0]["shadow"] is True


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("limit_req_zone $a zone=z:1m rate=10r/h;\n", 1, "rate"),
        ("limit_req_zone $a zone=z:1m rate=0r/s;\n", 1, "rate"),
        ("limit_req_zone $a zone=z rate=1r/s;\n", 1, "SIZE"),
        ("\nlimit_req zone=none;\n", 2, "'none'"),
        ("limit_req_zone $a zone=z:1m rate=1r/s;\nlimit_req zone=z burst=x;\n", 2, "burst"),
        ("limit_req_zone $a zone=z:1m rate=1r/s;\nlimit_req zone=z bust=1;\n", 2, "'bust'"),
        ("limit_req_zone $a zone=z:1m rate=1r/s;\nlimit_req_zone $b zone=z:1m rate=1r/s;\n", 2, "line 1"),
        ("limit_conn_zone $a zone=z:1m;\nlimit_conn z 0;\n", 2, "connections"),
        ("limit_conn_zone $a zone=z:1m;\nlimit_conn z;\n", 2, "number"),
        ("limit_req_zone $a zone=z:1m rate=1r/s;\n", 1, "uses a zone"),
        ("http {\n  server {\n", 2, "not closed"),
        ("limit_req zone=a;\n}\n", 2, "closes nothing"),
        ("http {\n  limit_req zone=a\n}\n", 2, "semicolon"),
        ("limit_req 'zone=a;\n", 1, "quotes"),
        ("limit_req zone=a;\n;\n", 2, "expected"),
        ("events { }\n", None, "no limit_req"),
        ("a {" * 300, 1, "deep"),
    ],
)
def test_a_mistake_is_one_error_with_its_line(text: str, line: int | None, words: str) -> None:
    """What nginx would not load is one clear error with file and line."""
    with pytest.raises(ConfigError, match=words) as caught:
        converted(text, "nginx")
    assert (caught.value.file, caught.value.line) == ("given", line)


@given(st.text(alphabet=st.sampled_from("{};#'\"\\$ \nab=zone:1m/limit_req_zone"), max_size=120))
def test_no_text_raises_anything_else(text: str) -> None:
    """Whatever is fed to it, the only exception is the one with the file's name."""
    try:
        converted(f"{ZONE.format(rate='1r/s')}{text}", "nginx")
    except ConfigError as error:
        assert error.file == "given"


def test_control_characters_stay_out_of_comments() -> None:
    """A key with an escape or a NUL in it makes a policy file all the same, which shows neither."""
    found = converted('limit_req_zone "$uri\x1b[31m\x00\x7f" zone=z:1m rate=1r/s;\nserver { limit_req zone=z; }\n')
    assert found.text.replace("\n", "").isprintable()
