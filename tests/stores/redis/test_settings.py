"""URLs, and the settings of clients that are brought."""

from __future__ import annotations

import pytest
import redis
import redis.asyncio
import redis.sentinel
import valkey
import valkey.asyncio

from headway.errors import ConfigError
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.stores.redis.clients import settings_of
from headway.stores.redis.settings import Node, Settings, Tls, read_url
from headway.stores.url import open_async_store, open_store


def read(url: str) -> Settings:
    return read_url(url, {})[0]


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("redis://", Settings("single", (Node("localhost", 6379),))),
        ("redis://h", Settings("single", (Node("h", 6379),))),
        ("redis://h:7000/3", Settings("single", (Node("h", 7000),), 3)),
        ("redis://[::1]:7000", Settings("single", (Node("::1", 7000),))),
        ("redis://u%40x:p%3Aq@h", Settings("single", (Node("h", 6379),), 0, "u@x", "p:q")),
        ("redis://:p@h", Settings("single", (Node("h", 6379),), 0, "", "p")),
        ("redis://h?db=2&protocol=3", Settings("single", (Node("h", 6379),), 2, protocol=3)),
        ("rediss://h", Settings("single", (Node("h", 6379),), tls=Tls())),
        ("rediss://h?ssl_cert_reqs=none", Settings("single", (Node("h", 6379),), tls=Tls(verify=False, check_hostname=False))),
        ("rediss://h?ssl_ca_certs=/a/b", Settings("single", (Node("h", 6379),), tls=Tls("/a/b"))),
        ("unix:///run/redis%20x.sock?db=1", Settings("single", (Node("", 0, "/run/redis x.sock"),), 1)),
        ("redis+cluster://a,b:7001", Settings("cluster", (Node("a", 6379), Node("b", 7001)))),
        ("redis+sentinel://a,b:7/main/4", Settings("sentinel", (Node("a", 26379), Node("b", 7)), 4, service="main")),
        (
            "rediss+sentinel://u:p@a/main?sentinel_password=s",
            Settings("sentinel", (Node("a", 26379),), 0, "u", "p", tls=Tls(), service="main", sentinel_password="s"),
        ),
    ],
)  # fmt: skip
def test_a_url_is_read(url: str, settings: Settings) -> None:
    """Hosts, ports, databases, credentials, TLS, Sentinels, clusters and sockets are read as written."""
    assert read(url) == settings


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://a,b", "redis\\+cluster"),
        ("redis://h:0", "port of 'h:0' is '0'; expected 1 to 65535"),
        ("redis://h:x", "port of 'h:x'"),
        ("redis://h/x", "the database is 'x'; expected a number from 0"),
        ("redis://h/1/2", "the database is"),
        ("redis+cluster://h/1", "a cluster has only 0"),
        ("redis+sentinel://h", "names no service"),
        ("unix://", "names no socket"),
        ("redis://h?protocol=4", "protocol is '4'; expected 2 or 3"),
        ("redis://h?tiemout=4", "'tiemout'; known are .*deadline.*refusal_cache.*share"),
        ("redis://h?deadline=x", "deadline is 'x': expected a duration such as 100ms"),
        ("redis://h?share=2", "share is '2': expected a fraction above 0 and up to 1"),
        ("redis://h?deadline=1ms&deadline=2ms", "gives 'deadline' twice"),
        ("redis://h#x", "fragment"),
        ("redis+x://h", "names no store known here; expected .*redis://"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs is 'maybe'"),
        ("redis://h?ssl_ca_certs=ca.pem", "has 'ssl_ca_certs' but no TLS; expected rediss://"),
        ("redis://[::1", r"'redis://\[::1' is no URL .*; expected redis://"),
        ("redis://h\n", r"has the character '\\n' in it; write it as %0A"),
        ("redis://h/0 ", "has the character ' ' in it; write it as %20"),
    ],
)
def test_a_url_that_cannot_be_right_says_why(url: str, said: str) -> None:
    """One message names the URL, what is wrong and what is accepted, for both kinds of store."""
    for opened in (open_store, open_async_store):
        with pytest.raises(ConfigError, match=said):
            opened(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://user:s3cret@h/x", "the database is 'x'"),
        ("redis://user:s3cret@[h/0", "is no URL"),
        ("redis://user:s3/cret@h:1/0", "ends at the / of its password, which is written as %2F"),
        ("redis://user:s3?cret@h:1/0", "ends at the [?] of its password, which is written as %3F"),
        ("redis://user:s3#cret@h:1/0", "a # in a password is written as %23"),
        ("redis://user:s3 cret@h:1/0", "has the character ' ' in it; write it as %20"),
        ("redis+cluster://user:s3cret@h:x,i", "the port of 'h:x'"),
    ],
)
def test_no_error_tells_a_password(url: str, said: str) -> None:
    """However wrong the URL is, its message shows no part of what may be the password, and says how to write it."""
    with pytest.raises(ConfigError, match=said) as raised:
        read(url)
    assert not any(part in str(raised.value) for part in ("s3", "cret"))
    assert "user:***@" in str(raised.value)


def test_a_password_is_told_to_nobody() -> None:
    """No representation shows a password."""
    store = RedisStore("redis://user:s3cret@h")
    assert "s3cret" not in repr(store) + str(store.settings) + repr(store.settings)


def test_options_come_by_url_or_by_argument() -> None:
    """The deadline, the cap of the refusal cache and the share are read from the URL; arguments count more."""
    store = RedisStore("redis://h?deadline=50ms&refusal_cache=0&share=1/4")
    assert (store.deadline, store.refusal_cache, str(store.share)) == (0.05, 0.0, "1/4")
    assert RedisStore("redis://h?deadline=50ms", deadline=0.2).deadline == 0.2
    assert (RedisStore("redis://h").deadline, RedisStore("redis://h").refusal_cache) == (0.1, 1.0)
    with pytest.raises(ConfigError, match="deadline is 0"):
        RedisStore("redis://h", deadline=0)


@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
def test_any_kind_of_client_tells_where_its_server_is(library: object) -> None:
    """Plain, asynchronous, TLS, Unix socket and Sentinel clients of both libraries; either store takes either kind."""
    plain = library.Redis if library is redis else library.Valkey  # type: ignore[attr-defined]  # one of two modules
    later = library.asyncio.Redis if library is redis else library.asyncio.Valkey  # type: ignore[attr-defined]  # the same
    for kind in (plain, later):
        client = kind(host="h", port=7, db=2, username="u", password="p", decode_responses=True, protocol=3)
        assert settings_of(client) == Settings("single", (Node("h", 7),), 2, "u", "p")
        assert settings_of(kind(host="h", ssl=True, ssl_cert_reqs="none")).tls == Tls(
            verify=False, check_hostname=False
        )
        assert settings_of(kind(unix_socket_path="/run/r")).nodes == (Node("", 0, "/run/r"),)
        assert RedisStore(client).settings == AsyncRedisStore(client).settings
    sentinel = library.sentinel.Sentinel([("s", 1), ("t", 2)], sentinel_kwargs={"password": "x"}, password="p", db=3)  # type: ignore[attr-defined]  # the same
    assert settings_of(sentinel.master_for("main")) == Settings(
        "sentinel", (Node("s", 1), Node("t", 2)), 3, "", "p", service="main", sentinel_password="x"
    )


def test_what_is_no_client_is_refused() -> None:
    """Something else than a URL or a client is a clear error."""
    with pytest.raises(
        ConfigError, match="store is an int; expected a store, a redis-py or valkey-py client, or a URL"
    ):
        RedisStore(5)
