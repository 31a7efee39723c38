"""State in PostgreSQL, through psycopg 3: one function call a decision."""

from importlib.util import find_spec

if find_spec("psycopg") is None:  # here, so that every module of this package says it
    raise ModuleNotFoundError("headway.stores.postgres needs psycopg: pip install 'headway[postgres]'", name="psycopg")
