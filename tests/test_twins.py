"""Each twin is the other with ``await``: its source without async and await, and a few names replaced, is the same.

What is not compared is named here with its reason, so that no difference can hide.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

from headway.client import pace, slot
from headway.limiter import async_limiter, limiter, reservation

RENAMED = {
    "AsyncLimiter": "Limiter",
    "AsyncReservation": "Reservation",
    "AsyncSlot": "Slot",
    "AsyncStore": "Store",
    "AsyncIterator": "Iterator",
    "asynccontextmanager": "contextmanager",
    "_async_stand_in": "_stand_in",
    "turn_async": "turn",
    "pause_async": "pause",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}

DIFFERENT = {
    "__init__": "the asynchronous store is opened from more kinds of stores",
    "_perform": "a quota provider's awaitable answer is awaited by one and refused by the other; the rest is compared",
    "limited": "the synchronous one also wraps async functions, on the memory store",
}

PACE_DIFFERENT = {
    "__init__": "the asynchronous pace is made of more kinds of stores",
    "_perform": "the pause waits for an event of threads, or of the loop, which is imported only then",
}

SLOT_DIFFERENT = {
    "hold": "the heart beats in a thread that is told to end, or in a task that is cancelled",
    "_beat": "the same",
}

POSTGRES_DIFFERENT = {
    "__init__": "each takes connections and pools of its own kind",
    "init": "the deadline is an instant for threads, and seconds for a task",
    "advance": "a task can be cancelled in mid-call; what it charged is then taken back",
    "_check": "who holds the deadline: the connection for threads, a timeout around the task",
    "_begin": "the same",
    "_drive": "the same",
    "_asked": "each speaks with its own kind of connection",
    "_run": "the same",
    "_connection": "each borrows from its own kind of pool",
    "ask": "the short way is for threads alone: decisions of a loop travel together",
    "short": "the same",
    "_undo": "see advance",
    "_undone": "see advance",
}


OWN_WAY = "trip"
"""On Redis a loop's decisions travel together: the asynchronous limiter alone takes that way, in blocks that begin by asking for it."""


class Stripped(ast.NodeTransformer):
    """The asynchronous source as it would be without async, await and its own way."""

    def visit_If(self, node: ast.If) -> ast.AST | None:  # ast's name
        self.generic_visit(node)
        asked = {part.attr.removeprefix("_") for part in ast.walk(node.test) if isinstance(part, ast.Attribute)}
        return None if OWN_WAY in asked and not node.orelse else node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:  # ast's name
        self.generic_visit(node)
        return ast.copy_location(ast.FunctionDef(**dict(ast.iter_fields(node))), node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:  # ast's name
        self.generic_visit(node)
        return ast.copy_location(ast.With(**dict(ast.iter_fields(node))), node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:  # ast's name
        self.generic_visit(node)
        return ast.copy_location(ast.For(**dict(ast.iter_fields(node))), node)

    def visit_Await(self, node: ast.Await) -> ast.AST:  # ast's name
        return self.visit(node.value)  # type: ignore[no-any-return]


class Renamed(ast.NodeTransformer):
    """The few names that differ, made the synchronous ones."""

    def visit_Name(self, node: ast.Name) -> ast.AST:  # ast's name
        return ast.Name(RENAMED.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # ast's name
        self.generic_visit(node)
        return ast.Attribute(node.value, RENAMED.get(node.attr, node.attr), node.ctx)


def source(module: ModuleType) -> str:
    return Path(module.__file__ or "").read_text()


def postgres(module: str, name: str) -> dict[str, str]:
    """A PostgreSQL store's methods; read as text, because importing it needs the extra."""
    return methods((Path(limiter.__file__).parents[1] / "stores/postgres" / f"{module}.py").read_text(), name)


def methods(text: str, name: str) -> dict[str, str]:
    """The class's methods as source without docstrings, comments and layout, by their synchronous names."""
    tree = ast.parse(text)
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    bodies: dict[str, str] = {}
    for node in found.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        plain = Renamed().visit(Stripped().visit(node))
        plain.name = RENAMED.get(plain.name, plain.name)
        bodies[plain.name] = bodies.get(plain.name, "") + ast.unparse(ast.fix_missing_locations(plain))
    return bodies


TWINS = {
    "Limiter": (methods(source(limiter), "Limiter"), methods(source(async_limiter), "AsyncLimiter")),
    "Reservation": (methods(source(reservation), "Reservation"), methods(source(reservation), "AsyncReservation")),
    "Pace": (methods(source(pace), "Pace"), methods(source(pace), "AsyncPace")),
    "Slot": (methods(source(slot), "Slot"), methods(source(slot), "AsyncSlot")),
    "PostgresStore": (postgres("sync", "PostgresStore"), postgres("aio", "AsyncPostgresStore")),
}
"""Redis' two leaves are not among them: a loop's decisions travel together (decision 18), and what they share are flows."""

EXCEPTIONS = {
    "Limiter": DIFFERENT,
    "Reservation": {},
    "Pace": PACE_DIFFERENT,
    "Slot": SLOT_DIFFERENT,
    "PostgresStore": POSTGRES_DIFFERENT,
}


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_have_the_same_methods(name: str) -> None:
    """Nothing can be asked of one that the other does not have."""
    plain, asynchronous = TWINS[name]
    assert plain.keys() ^ asynchronous.keys() <= EXCEPTIONS[name].keys()


@pytest.mark.parametrize(
    ("name", "method"),
    [(name, method) for name, (plain, _) in TWINS.items() for method in plain if method not in EXCEPTIONS[name]],
)
def test_each_method_is_its_twin_without_await(name: str, method: str) -> None:
    """A branch that exists in one and not in the other is a bug in waiting."""
    plain, asynchronous = TWINS[name]
    assert asynchronous.get(method) == plain[method]


def test_all_effects_but_a_provider_s_call_are_performed_alike() -> None:
    """Up to its last case, ``Call``, ``_perform`` is one text."""
    plain, asynchronous = (bodies["_perform"].partition("case Call(") for bodies in TWINS["Limiter"])
    assert plain[:2] == asynchronous[:2]
    assert "case" not in plain[2] + asynchronous[2]


def test_the_exceptions_are_still_exceptions() -> None:
    """What is listed as different is there and does differ; else the list would hide something."""
    for name, (plain, asynchronous) in TWINS.items():
        for method in EXCEPTIONS[name]:
            assert plain.get(method) != asynchronous.get(method), f"{name}.{method}"


def test_a_forgotten_branch_would_be_seen() -> None:
    """The comparison itself finds a planted difference, and none in async, await and layout."""
    twin = "class A:\n    async def f(self):\n        'Doc.'\n        async with self.x() as y:\n            return await y\n"
    same = "class A:\n    def f(self):\n        with self.x() as y:\n            return y\n"
    other = "class A:\n    def f(self):\n        with self.x() as y:\n            return y or None\n"
    assert methods(twin, "A") == methods(same, "A") != methods(other, "A")
