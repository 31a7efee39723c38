"""The schema: its versions, whose it is, logged or not; what a URL may say; ``headway store`` on a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest

from headway import ConfigError, Limit, Limiter, StoreUnavailable, StoreUnusable
from headway.cli import main
from headway.core.charge import Charge
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.schema import SCHEMA_VERSION, check_schema, schema_sql
from headway.stores.postgres.sync import PostgresStore
from headway.testing import blocking
from stores.postgres.server import PostgresServer

pytestmark = pytest.mark.xdist_group("postgres")

LIMIT = Limit("l", "5/hour", by="id")


@pytest.fixture
def owner(server: PostgresServer) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of the database's owner."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection  # type: ignore[misc]  # a fixture


Owner = psycopg.Connection[tuple[object, ...]]


def test_an_older_schema_is_brought_up_to_date_and_keeps_its_keys(url: str, schema: str, owner: Owner) -> None:
    """Functions with other arguments go, the state stays; without the right to install it is one clear error."""
    assert Limiter(LIMIT, store=url).hit(id="x").remaining == 4
    owner.execute(f"UPDATE {schema}.version SET number = {SCHEMA_VERSION - 1}")
    owner.execute(f"DROP FUNCTION {schema}.hit")
    owner.execute(f"CREATE FUNCTION {schema}.hit(old integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    with pytest.raises(
        StoreUnusable, match=f"has version {SCHEMA_VERSION - 1}, of an older headway; .*headway store init"
    ):
        PostgresStore(f"{url}&install=false").advance([Charge("n", LIMIT, "x", 1)])
    assert Limiter(LIMIT, store=url).hit(id="x").remaining == 3
    assert owner.execute(f"SELECT {schema}.schema_version()").fetchone() == (SCHEMA_VERSION,)
    found = owner.execute(
        "SELECT count(*) FROM pg_proc WHERE proname = 'hit' AND pronamespace = %s::regnamespace", (schema,)
    )
    assert found.fetchone() == (1,)


def test_a_newer_schema_is_never_put_back(url: str, schema: str, owner: Owner) -> None:
    """Neither a decision nor ``init`` of this headway replaces the functions of a later one."""
    store = PostgresStore(url)
    store.init()
    owner.execute(f"UPDATE {schema}.version SET number = 99")
    for act in (store.init, lambda: PostgresStore(url).advance([Charge("n", LIMIT, "x", 1)])):
        with pytest.raises(StoreUnusable, match="has version 99, of a newer headway"):
            act()
    assert owner.execute(f"SELECT {schema}.schema_version()").fetchone() == (99,)


def test_a_schema_of_somebody_else_is_not_touched(url: str, schema: str, owner: Owner) -> None:
    """A schema with other things in it is refused; an empty one that was made for us is taken, also by one who may not make any."""
    owner.execute(f"CREATE SCHEMA {schema}")
    owner.execute(f"CREATE FUNCTION {schema}.theirs() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    with pytest.raises(StoreUnusable, match=f"schema {schema} has other things in it; expected one that is empty"):
        PostgresStore(url).init()
    assert owner.execute(f"SELECT {schema}.theirs()").fetchone() == (1,)
    owner.execute(f"DROP FUNCTION {schema}.theirs()")
    owner.execute(f"CREATE ROLE {schema} LOGIN")
    owner.execute(f"GRANT ALL ON SCHEMA {schema} TO {schema}")
    mine = url.replace("//postgres@", f"//{schema}@")
    assert Limiter(LIMIT, store=mine).hit(id="x").remaining == 4


def test_two_schemas_are_two_stores(url: str, schema: str) -> None:
    """State is never shared between schemas of one database."""
    other = url.replace(f"schema={schema}", f"schema={schema}_other")
    for place in (url, other):
        assert Limiter(LIMIT, store=place).hit(id="x").remaining == 4


@pytest.mark.parametrize("unlogged", [False, True])
def test_the_table_is_logged_unless_asked(unlogged: bool, url: str, schema: str, owner: Owner) -> None:
    """``unlogged=true`` makes a table without write-ahead log; once there, it stays as it is, and ``init`` says so."""
    store = PostgresStore(f"{url}&unlogged={str(unlogged).lower()}")
    kind = "an unlogged" if unlogged else "a logged"
    assert store.init() == [f"schema {schema} version {SCHEMA_VERSION} was put in place, with {kind} table"]
    assert store.init() == [f"schema {schema} version {SCHEMA_VERSION} was there already, with {kind} table"]
    again = store.init(unlogged=not unlogged)
    assert again[1].endswith(f'ALTER TABLE "{schema}".state SET {"LOGGED" if unlogged else "UNLOGGED"}')
    owner.execute(again[1].partition("run ")[2])
    assert store.advance([Charge("n", LIMIT, "x", 1)]).allowed


def test_no_function_can_be_led_astray(url: str, schema: str, owner: Owner) -> None:
    """What runs with the owner's rights looks names up in pg_catalog first and in its caller's pg_temp last."""
    PostgresStore(url).init()
    rows = owner.execute(
        "SELECT proname, proconfig FROM pg_proc WHERE prosecdef AND pronamespace = %s::regnamespace", (schema,)
    ).fetchall()
    assert len(rows) >= 10
    assert [name for name, config in rows if config != ["search_path=pg_catalog, pg_temp"]] == []


def test_types_of_a_callers_own_are_never_used(url: str, schema: str, owner: Owner) -> None:
    """A role that may only call cannot have its own code run with the owner's rights, by a temporary type of a known name."""
    caller = f"caller_{schema}"
    owner.execute(f"CREATE ROLE {caller} LOGIN")
    PostgresStore(url).init(roles=[caller])
    with psycopg.connect(url.partition("?")[0].replace("postgres@", f"{caller}@"), autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION pg_temp.evil() RETURNS boolean LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'it runs as %', current_user; END $$"
        )
        for kind in ("text", "bytea"):
            connection.execute(f"CREATE DOMAIN pg_temp.{kind} AS pg_catalog.{kind} CHECK (pg_temp.evil())")
        words = "bigint[], '{\"\\\\x01\"}'::pg_catalog.bytea[], '{gcra}'::pg_catalog.text[], '{1:0:0:0:0:1000:5000:1}'::pg_catalog.text[]"
        connection.execute(f"SELECT {schema}.advance('{{1}}'::{words}, false, true, NULL, ''::pg_catalog.bytea)")
        connection.execute(f"SELECT {schema}.hit(1, '\\x02'::pg_catalog.bytea, '1:1000:5000:1'::pg_catalog.text, 1, 5)")


def test_a_database_that_gives_nobody_its_functions_gives_these(url: str, schema: str, owner: Owner) -> None:
    """Where new functions are nobody's by default, whom `init` names may call ours all the same."""
    caller = f"caller_{schema}"
    owner.execute(f"CREATE ROLE {caller} LOGIN")
    owner.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    try:
        PostgresStore(url).init(roles=[caller])
    finally:
        owner.execute("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC")
    other = Limit("other", "5/hour", by="id", algorithm="sliding-log")
    limiter = Limiter(LIMIT, other, store=url.replace("postgres@", f"{caller}@") + "&install=false")
    decision = limiter.hit(id="x")
    assert decision.degraded is None
    limiter.refund(decision)
    limiter.close()


@pytest.mark.parametrize("name", ["order", "user", "select", "state", "text", "authorization"])
def test_a_word_of_sqls_is_a_name_like_others(name: str, url: str, schema: str, owner: Owner) -> None:
    """A schema may be called as a statement's words are: everything works there."""
    store = PostgresStore(url.replace(f"schema={schema}", f"schema={name}"))
    limiter = Limiter(LIMIT, Limit("other", "5/hour", by="id", algorithm="sliding-log"), store=store)
    try:
        decision = limiter.hit(id="x")
        assert decision.degraded is None
        assert limiter.refund(decision)
        assert limiter.peek(id="x").allowed
        limiter.change_quota("other", "50/hour", keep="proportional")
        limiter.change_quota("other", "5/hour", keep="reset")
        limiter.reset(id="x")
        assert store.init() == [f"schema {name} version {SCHEMA_VERSION} was there already, with a logged table"]
    finally:
        limiter.close()
        store.close()
        owner.execute(f'DROP SCHEMA "{name}" CASCADE')


@pytest.mark.parametrize(
    "name", ["Limits", "1st", "a-b", "", "public", "pg_limits", "information_schema", "a" * 64, 'a"b']
)
def test_a_name_that_cannot_be_a_schema_of_ours(name: str) -> None:
    """Names that would need quotes, and schemas that are never ours, are refused with what is accepted."""
    with pytest.raises(ConfigError, match="expected one of its own: 1 to 63 lower-case letters"):
        check_schema(name)
    with pytest.raises(ConfigError):
        schema_sql(name, unlogged=False)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("deadline=soon", "deadline is 'soon'"),
        ("deadline=0.1ms", "expected seconds from 0.001"),
        ("unlogged=yes", "unlogged is 'yes': expected true or false"),
        ("install=1", "install is '1': expected true or false"),
        ("schema=Limits", "schema is 'Limits'"),
        ("share=0", "share is '0': expected a fraction above 0"),
        ("share=2", "share is '2': expected a fraction above 0"),
        ("share=1/0", "share is '1/0'"),
        ("share=1/2&share=1/3", "gives 'share' twice"),
    ],
)
def test_an_option_that_cannot_be_right(option: str, says: str) -> None:
    """Names the option, what was said and what is accepted, and never the password."""
    with pytest.raises(ConfigError) as said:
        PostgresStore(f"postgresql://user:secret@host/db?{option}")
    assert says in str(said.value)
    assert "secret" not in str(said.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://u:s3cret@[h/db", "is no URL"),
        ("postgresql://u:s3#cret@h/db", "a # in a password is written as %23"),
        ("postgresql://u:s3/cret@h/db", "ends at the / of its password, which is written as %2F"),
        ("postgresql://u:s3 cret@h/db", "has the character ' ' in it; write it as %20"),
        ("postgresql://u:s3cret@h:five/db", "the port is 'five'; expected 1 to 65535"),
        ("postgresql://u:s3cret@h/db?tiemout=5", 'invalid URI query parameter: "tiemout"; known are deadline, schema,'),
        ("host=h dbname=db password=s3cret", "is not of PostgreSQL; expected postgresql://"),
        ("postgresql:db", "is not of PostgreSQL; expected postgresql://"),
    ],
)
def test_a_url_that_cannot_be_right_says_why(url: str, says: str) -> None:
    """At construction, not at the first decision, and without a part of what may be the password."""
    for kind in (PostgresStore, AsyncPostgresStore):
        with pytest.raises(ConfigError, match=re.escape(says)) as said:
            kind(url)
        assert not any(part in str(said.value) for part in ("s3", "cret"))


@pytest.mark.parametrize(
    ("url", "libpq"),
    [
        ("postgresql:///db?host=/run/postgresql&schema=limits", {"host": "/run/postgresql", "dbname": "db"}),
        ("postgres://u@/db?deadline=1s&host=a,b&port=1,2", {"user": "u", "host": "a,b", "port": "1,2", "dbname": "db"}),
        ("postgresql://h1:1,h2:2/db?install=false", {"host": "h1,h2", "port": "1,2", "dbname": "db"}),
        ("postgresql://h/db?password=a+b%26c", {"host": "h", "dbname": "db", "password": "a+b&c"}),
        (
            "postgresql://h/db?options=-c%20geqo%3Doff&share=1/2",
            {"host": "h", "dbname": "db", "options": "-c geqo=off"},
        ),
    ],
)
def test_the_rest_of_a_url_is_libpqs_as_it_is_written(url: str, libpq: dict[str, str]) -> None:
    """Sockets, several hosts, spaces and pluses: taking our options out leaves the others as they were."""
    assert psycopg.conninfo.conninfo_to_dict(str(PostgresStore(url).where)) == libpq


@pytest.mark.parametrize("host", ["a..b", "a" * 300, "xn--ü"])
def test_a_name_that_no_host_can_have_is_an_outage(host: str) -> None:
    """What cannot be a host's name decides as an absent server does: no other error comes out."""
    for kind in (PostgresStore, AsyncPostgresStore):
        store: Any = kind(f"postgresql://{host}/db")
        with pytest.raises(StoreUnavailable):
            (store if kind is PostgresStore else blocking(store)).advance([Charge("n", LIMIT, "x", 1)])


def test_what_is_neither_a_url_nor_a_connection() -> None:
    """Each store takes its own kinds of connections and pools, and says which; other things and URLs are refused at once."""
    pool, later = psycopg_pool.ConnectionPool(open=False), psycopg_pool.AsyncConnectionPool(open=False)
    for wrong in (later, object(), None, 5):
        with pytest.raises(ConfigError, match="is no PostgreSQL URL, psycopg Connection or ConnectionPool"):
            PostgresStore(wrong)
    for wrong in (pool, object(), None, 5):
        with pytest.raises(ConfigError, match="is no PostgreSQL URL, psycopg AsyncConnection or AsyncConnectionPool"):
            AsyncPostgresStore(wrong)
    for url in ("mysql://h/db", "host=h dbname=db", ""):
        with pytest.raises(ConfigError, match="is not of PostgreSQL; expected postgresql://"):
            PostgresStore(url)


def test_a_url_says_everything() -> None:
    """Every option of the constructor can stand in the URL, and the rest of the query is PostgreSQL's."""
    store = PostgresStore(
        "postgresql://u:p@h:5433/db?deadline=250ms&schema=limits&unlogged=true&install=false&share=1/4&sslmode=require"
    )
    assert (store.deadline, store.schema, store.unlogged, store.install) == (0.25, "limits", True, False)
    assert store.share == Fraction(1, 4)
    assert store.where == "postgresql://u:p@h:5433/db?sslmode=require"
    assert repr(store) == "<PostgresStore postgresql://h:5433/db schema=limits>"


@pytest.mark.parametrize("held", ["nonsense", "", "7", "NaN:1", "1:2:3:4:5", "1,2", "1 0 2", "-1", "1.5:1"])
def test_damaged_rows_are_store_errors(held: str, url: str, schema: str, owner: Owner) -> None:
    """A row that somebody else has written into fails the decision, which then is degraded; a reset mends it.

    It is no outage: other keys are decided as ever, however often it is asked for.
    """
    limits = [LIMIT, *(Limit(name, "5/hour", by="id", algorithm=name) for name in ("fixed-window", "sliding-log"))]
    for several in ([LIMIT], [limits[1]], [limits[2]], limits):
        store = PostgresStore(url)
        limiter = Limiter(*several, store=store)
        limiter.hit(id="x")
        owner.execute(f"UPDATE {schema}.state SET state = %s WHERE position('x' in encode(key, 'escape')) > 0", (held,))
        if held:  # else there is no state
            for _ in range(4):
                decision = limiter.peek(id="x")
                assert "headway store reset" in str(decision.degraded), (held, several)
            assert limiter.hit(id="x").degraded
        assert limiter.hit(id="other").degraded is None
        assert not store.breaker.open
        limiter.reset(id="x")
        assert limiter.hit(id="x").remaining == 4
        limiter.reset(id="x")
        limiter.reset(id="other")


POLICIES = """
store = "memory://"
[[policies.codes.limits]]
name = "resend"
quota = "1 per 60s"
by = "phone"
"""


def test_the_command_on_a_real_server(
    url: str, schema: str, owner: Owner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking puts nothing in place; init does, and lets a role in; inspect, reset and bench work with that role."""
    file = tmp_path / "limits.toml"
    file.write_text(POLICIES)
    assert main(["store", "inspect", url]) == 69
    assert "headway store init" in capsys.readouterr().err
    owner.execute(f"CREATE ROLE {schema} LOGIN")
    assert main(["store", "init", url, "--unlogged", "--role", schema]) == 0
    out = capsys.readouterr().out
    assert f"schema {schema} version {SCHEMA_VERSION} was put in place, with an unlogged table" in out
    assert f"role {schema} may call the functions" in out
    mine = url.replace("//postgres@", f"//{schema}@")
    with Limiter(Limit("resend", "1 per 60s", by="phone"), store=mine, namespace="default#codes") as limiter:
        assert limiter.hit(phone="1").allowed
    words = [mine, "--policy", str(file), "phone=1"]
    assert main(["store", "inspect", *words]) == 0
    assert "would be refused by resend" in capsys.readouterr().out
    assert main(["store", "reset", *words, "--yes"]) == 0
    assert main(["store", "inspect", *words]) == 0
    assert "resend (1/minute, gcra) for phone='1': unused" in capsys.readouterr().out
    assert main(["store", "bench", mine, "--seconds", "0.2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4
    assert owner.execute(f"SELECT count(*) FROM {schema}.state").fetchone() == (0,)
    assert main(["store", "init", url, "--role", "nobody_of_that_name"]) == 69
    assert "nobody_of_that_name" in capsys.readouterr().err


def test_what_is_printed_can_be_run(url: str, schema: str, owner: Owner) -> None:
    """The SQL of ``headway store init --print``, run by hand, is what the store finds in place."""
    printed = subprocess.run(
        [sys.executable, "-m", "headway", "store", "init", url, "--print"], capture_output=True, text=True, check=True
    ).stdout
    owner.execute(printed)
    assert Limiter(LIMIT, store=f"{url}&install=false").hit(id="x").remaining == 4
    assert PostgresStore(url).init()[0].startswith(f"schema {schema} version {SCHEMA_VERSION} was there already")
