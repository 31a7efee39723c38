"""Ways to a real server: clients that are brought, Unix sockets, TLS with and without a certificate of one's own."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio
import valkey
import valkey.asyncio as valkey_asyncio

from headway import Limit, Limiter
from headway.core.charge import Charge
from headway.errors import StoreUnavailable
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.stores.redis.settings import Node, Settings
from headway.testing import blocking
from servers import REDIS, Server, free_port, redis_server

LIMIT = Limit("l", "3 per 365 days", by="id")
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


@contextmanager
def opened(kind: str, where: object) -> Iterator[Any]:
    store = RedisStore(where, deadline=5) if kind == "sync" else blocking(AsyncRedisStore(where, deadline=5))
    try:
        yield store
    finally:
        store.close()


def balances(store: Any, key: str = "k") -> list[int]:
    return [store.advance([Charge("n", LIMIT, key, 1)]).outcomes[0].remaining for _ in range(4)]


@KINDS
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "decoded"])
def test_either_store_takes_any_client(server: Server, kind: str, protocol: int, decode: bool) -> None:
    """redis-py's and valkey-py's clients of both kinds, RESP2 or RESP3, decoding or not: the same decisions."""
    made = (redis_py.Redis, redis_asyncio.Redis, valkey.Valkey, valkey_asyncio.Valkey)
    for number, client in enumerate(made):
        with opened(kind, client(port=server.port, protocol=protocol, decode_responses=decode)) as store:
            assert balances(store, f"k{number}") == [2, 1, 0, 0]
    with opened(kind, f"{server.url}&protocol={protocol}") as store:
        assert balances(store, "url") == [2, 1, 0, 0]


def test_a_client_that_is_brought_stays_open(redis: Server) -> None:
    """Closing the store closes none of the client's connections, and closing the client none of ours."""
    client = redis_py.Redis(port=redis.port)
    client.ping()
    with opened("sync", client) as store:
        assert balances(store) == [2, 1, 0, 0]
        client.close()
        assert not store.advance([Charge("n", LIMIT, "k", 1)]).allowed
    assert client.ping()
    client.close()


@KINDS
def test_a_unix_socket_is_as_good_as_a_port(kind: str, tmp_path: Path) -> None:
    """By URL, its path percent-encoded, and by a client; a path where nobody listens is named in the error."""
    place = tmp_path / "a redis.sock"
    with redis_server("redis-6.2", "--unixsocket", str(place)):
        with opened(kind, f"unix://{str(place).replace(' ', '%20')}") as store:
            assert balances(store) == [2, 1, 0, 0]
        with opened(kind, redis_py.Redis(unix_socket_path=str(place))) as store:
            assert balances(store, "other") == [2, 1, 0, 0]
    with (
        opened(kind, f"unix://{tmp_path}/nobody.sock") as store,
        pytest.raises(StoreUnavailable, match=r"nobody\.sock"),
    ):
        balances(store)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority (ca.pem), and a certificate of it for 127.0.0.1 (both.pem with its key)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl: install it with your system's package manager")
    folder = tmp_path_factory.mktemp("certificates")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj")
    run(*new, "/CN=authority", "-x509", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem")
    run(*new, "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    run("x509", "-req", "-in", "server.csr", "-out", "server.pem", *signed)
    return folder


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[int]:
    """The port of the system's Redis that speaks TLS, and wants a certificate of the authority from its clients too."""
    port = free_port()
    files = ("--tls-cert-file", f"{certificates}/server.pem", "--tls-key-file", f"{certificates}/server.key")
    options = ("--tls-port", str(port), *files, "--tls-ca-cert-file", f"{certificates}/ca.pem")
    if REDIS["redis-system"]() is None:
        pytest.skip("needs the system's Redis, which speaks TLS: run scripts/install-servers")
    with redis_server("redis-system", *options):
        yield port


def shown(certificates: Path) -> str:
    return f"ssl_ca_certs={certificates}/ca.pem&ssl_certfile={certificates}/server.pem&ssl_keyfile={certificates}/server.key"


@KINDS
def test_tls_checks_both_ends(kind: str, secure: int, certificates: Path) -> None:
    """With the authority's certificate the server is known, and knows us; by URL and by a client."""
    redis_py.Redis(
        port=secure,
        ssl=True,
        ssl_ca_certs=f"{certificates}/ca.pem",
        ssl_certfile=f"{certificates}/server.pem",
        ssl_keyfile=f"{certificates}/server.key",
        ssl_check_hostname=False,
    ).flushall()
    url = f"rediss://127.0.0.1:{secure}?{shown(certificates)}"
    with opened(kind, url) as store:
        assert balances(store) == [2, 1, 0, 0]
    client = redis_asyncio.Redis(
        host="127.0.0.1",
        port=secure,
        ssl=True,
        ssl_ca_certs=f"{certificates}/ca.pem",
        ssl_certfile=f"{certificates}/server.pem",
        ssl_keyfile=f"{certificates}/server.key",
    )
    with opened(kind, client) as store:
        assert balances(store, "client") == [2, 1, 0, 0]


@KINDS
def test_a_clients_certificates_are_used_however_they_are_given(kind: str, secure: int, certificates: Path) -> None:
    """An authority as text, and a key with a password, which nobody is asked for."""
    key, where = certificates / "locked.key", {"host": "127.0.0.1", "port": secure, "ssl": True}
    subprocess.run(
        ["openssl", "pkey", "-in", certificates / "server.key", "-aes256", "-passout", "pass:word", "-out", key],
        check=True,
        capture_output=True,
    )
    ours = {"ssl_certfile": f"{certificates}/server.pem", "ssl_keyfile": str(key)}
    text = (certificates / "ca.pem").read_text()
    client = redis_py.Redis(**where, **ours, ssl_ca_data=text, ssl_password="word", ssl_min_version=771)  # type: ignore[arg-type]  # as users write it
    with opened(kind, client) as store:
        assert balances(store, f"given {kind}") == [2, 1, 0, 0]
    with opened(kind, redis_py.Redis(**where, **ours, ssl_ca_data=text)) as store, pytest.raises(StoreUnavailable):  # type: ignore[arg-type]  # the same
        balances(store)


@pytest.mark.parametrize("library", [redis_py, valkey])
def test_a_password_may_be_bytes(library: Any, redis: Server) -> None:
    """As client libraries take them."""
    client = (library.Redis if library is redis_py else library.Valkey)(password=b"s3cret", username=b"bob")
    assert (RedisStore(client).settings.username, RedisStore(client).settings.password) == ("bob", "s3cret")


@KINDS
def test_a_certificate_that_nobody_vouches_for_is_refused(kind: str, secure: int, certificates: Path) -> None:
    """An unknown authority, and a name that is not in the certificate, are errors that say so, unless switched off."""
    with (
        opened(kind, f"rediss://127.0.0.1:{secure}") as store,
        pytest.raises(StoreUnavailable, match=r"(?i)certificate"),
    ):
        balances(store)
    other = f"rediss://localhost:{secure}?{shown(certificates)}"
    with opened(kind, other) as store, pytest.raises(StoreUnavailable, match=r"(?i)hostname|certificate"):
        balances(store)
    with opened(kind, other + "&ssl_check_hostname=false") as store:
        assert store.advance([Charge("n", LIMIT, "x", 0)]).allowed
    trusting = f"rediss://localhost:{secure}?ssl_cert_reqs=none&ssl_certfile={certificates}/server.pem"
    with opened(kind, f"{trusting}&ssl_keyfile={certificates}/server.key") as store:
        assert store.advance([Charge("n", LIMIT, "x", 0)]).allowed


def test_a_plain_port_is_no_tls_and_the_other_way_round(redis: Server, secure: int) -> None:
    """The wrong scheme is an error within the deadline, not a wait."""
    for url in (f"rediss://127.0.0.1:{redis.port}", f"redis://127.0.0.1:{secure}"):
        store = RedisStore(url, deadline=0.5)
        with pytest.raises(StoreUnavailable):
            balances(store)
        store.close()


def test_a_user_of_few_rights_is_enough(server: Server) -> None:
    """A user with the rights that the documentation names can do everything; without a right the error names it."""
    client = redis_py.Redis(port=server.port)
    rights = ["+eval", "+evalsha", "+get", "+set", "+del", "+time", "+info", "+scan", "+ping", "+hello"]
    client.acl_setuser("headway", enabled=True, passwords=["+secret"], keys=["*"], commands=rights)
    limiter = Limiter(LIMIT, store=f"redis://headway:secret@127.0.0.1:{server.port}?deadline=5s")
    decision = limiter.hit(id="k")
    assert decision.degraded is None
    assert limiter.refund(decision)
    assert limiter.reset(id="k") == ("l",)
    limiter.change_quota("l", "5 per 365 days", keep="proportional")
    limiter.close()
    client.execute_command("ACL", "SETUSER", "headway", "-get")
    poor = Limiter(LIMIT, store=f"redis://headway:secret@127.0.0.1:{server.port}?deadline=5s")
    assert re.search("can't run this command|no permissions to run the 'get' command", str(poor.hit(id="k").degraded))
    poor.close()
    client.acl_deluser("headway")


@KINDS
@pytest.mark.parametrize("host", ["a..b", "a" * 300, "xn--ü"])
def test_a_name_that_no_host_can_have_is_an_outage(kind: str, host: str) -> None:
    """What the codec of host names cannot write decides as an absent server does: no other error comes out."""
    with opened(kind, f"redis://{host}") as store, pytest.raises(StoreUnavailable, match="is no name of a host"):
        store.advance([Charge("n", LIMIT, "k", 1)])


@KINDS
def test_credentials_that_are_not_to_be_had_are_an_outage(kind: str, redis: Server) -> None:
    """A credential provider that fails makes a decision as an absent server does."""

    def given() -> tuple[str]:
        raise RuntimeError("the vault is shut")

    settings = Settings("single", (Node("127.0.0.1", redis.port),), credentials=given)
    with opened(kind, settings) as store, pytest.raises(StoreUnavailable, match="the vault is shut"):
        store.advance([Charge("n", LIMIT, "k", 1)])
