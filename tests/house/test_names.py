"""What nothing of ours is called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

VAGUE = {"bucket", "buckets", "context", "data", "info", "manager", "rate", "result", "results", "token", "tokens"}
NEVER_A_FILE = {"helper", "helpers", "misc", "util", "utils", "common"}
THEIRS = {
    "adapters": {"context", "data", "info"},  # parameters of gRPC, of aiohttp's write and of WSGI (exc_info)
    "analysis/compare": {"bucket", "buckets", "token", "tokens"},  # models of the token bucket and of the leaky one
    "analysis/convert/nginx.py": {"context", "rate"},  # what nginx calls a block, and the parameter of limit_req_zone
    "analysis/lint/body.py": {"data"},  # HTMLParser's method
    "client/_body.py": {"bucket"},  # a cost bucket is what the API that has one calls it
    "client/rejection.py": {"rate"},  # rate limited, the field's word
    "client/transport_urllib3.py": {"manager"},  # urllib3's PoolManager
    "core": {"bucket", "token"},  # the algorithms' names, and a lease's token
    "errors.py": {"rate"},  # RateLimited
    "policy/forwarded.py": {"token"},  # RFC 9110's production
    "policy/quota_keys.py": {"bucket"},  # the algorithms' names
    "presentation/page.py": {"data"},  # HTMLParser's method
    "presentation/structured.py": {"token"},  # RFC 9651's type
    "service/lease.py": {"token"},  # a lease's token
    "service/uvicorn_h11.py": {"data"},  # asyncio.Protocol's method
    "stores/postgres/codec.py": {"token"},  # a lease's token
    "stores/redis/aio_wire.py": {"data"},  # asyncio.Protocol's method
    "stores/redis/codec.py": {"token"},  # a lease's token
    "stores/redis/deciding.py": {"token"},  # a lease's token
    "stores/redis/handshake.py": {"context"},  # a TLS context
    "testing": {"context", "token"},  # multiprocessing's context, a lease's token
}
"""Words that somebody else, or the field, has fixed, and where: a package or a module."""


def test_nothing_of_ours_has_a_vague_name(sources: dict[Path, ast.Module]) -> None:
    """No class, function, argument, variable or attribute is called data, result, token and so on, but for others' words."""
    vague = [
        f"{path}:{line}: {name}"
        for path, tree in sources.items()
        for line, name in _named(tree)
        for word in _words(name) & VAGUE - _theirs(path)
        if word != "rate" or not name.startswith(("RateLimit", "AsyncRateLimit"))
    ]
    assert not vague


def test_no_module_is_called_after_nothing(sources: dict[Path, ast.Module]) -> None:
    """No module or package is called helpers, utils or the like."""
    assert not [path for path in sources if {*path.with_suffix("").parts} & (NEVER_A_FILE | VAGUE)]


def test_every_exception_to_the_names_is_used(sources: dict[Path, ast.Module]) -> None:
    """What is listed as somebody else's word is there; else the list would hide something."""
    for place, words in THEIRS.items():
        there = {
            word
            for path, tree in sources.items()
            if path.as_posix() == place or path.as_posix().startswith(f"{place}/")
            for _, name in _named(tree)
            for word in _words(name)
        }
        assert words <= there, place


def test_vague_names_are_seen_wherever_they_hide() -> None:
    """The checks above see a class, a function, an argument, a variable and an attribute, in either way of writing."""
    hidden = """
class TokenStore:
    def load_data(self, result):
        self._context = info = 1
"""
    found = [word for _, name in _named(ast.parse(hidden)) for word in sorted(_words(name) & VAGUE)]
    assert sorted(found) == ["context", "data", "info", "result", "token"]


def _theirs(path: Path) -> set[str]:
    place = path.as_posix()
    return {
        word for start, words in THEIRS.items() if place == start or place.startswith(f"{start}/") for word in words
    }


def _words(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def _named(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass
