"""Python source as text: what it assigns, what it calls limiters with, and what it decorates. Nothing of it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

__all__ = ["Code", "Decorated", "decorated", "parsed", "settings"]

_ARGUMENTS: Final = {
    "default_limits": "RATELIMIT_DEFAULT",
    "default_limits_per_method": "RATELIMIT_DEFAULTS_PER_METHOD",
    "application_limits": "RATELIMIT_APPLICATION",
    "meta_limits": "RATELIMIT_META",
    "storage_uri": "RATELIMIT_STORAGE_URI",
    "strategy": "RATELIMIT_STRATEGY",
    "swallow_errors": "RATELIMIT_SWALLOW_ERRORS",
    "in_memory_fallback": "RATELIMIT_IN_MEMORY_FALLBACK",
    "in_memory_fallback_enabled": "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED",
    "enabled": "RATELIMIT_ENABLED",
    "headers_enabled": "RATELIMIT_HEADERS_ENABLED",
    "key_prefix": "RATELIMIT_KEY_PREFIX",
    "on_breach": "RATELIMIT_ON_BREACH_CALLBACK",
    "storage_options": "RATELIMIT_STORAGE_OPTIONS",
}
"""Arguments of Flask-Limiter's and slowapi's ``Limiter``, by the setting that says the same."""


_BY_ADDRESS: Final = ("get_remote_address", "get_ipaddr")


class Code:
    """A value that only running would give."""


class Decorated(NamedTuple):
    """One ``@limiter.limit("…")``.

    Attributes:
        name: the function that it limits, or the scope of a shared limit.
        words: its limits: text, or ``Code``.
        shared: several functions count together.
        options: the names of other arguments.
        line: the decorator's.
    """

    name: str
    words: Any
    shared: bool
    options: tuple[str, ...]
    line: int


def parsed(text: str) -> ast.Module | None:
    """The module, or None for a text that is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def settings(tree: ast.Module) -> Iterator[tuple[str, tuple[Any, int]]]:
    """Every setting with its value, or ``Code``, and its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, (_literal(value), node.lineno)
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(name)))], value=value):
                yield name, (_literal(value), node.lineno)  # app.config["RATELIMIT_DEFAULT"] = …
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, (_literal(value), node.lineno)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, (_literal(value), value.lineno)
            case ast.Call():
                yield from _called(node)
            case _:
                pass


def _called(node: ast.Call) -> Iterator[tuple[str, tuple[Any, int]]]:
    makes = isinstance(node.func, ast.Name) and node.func.id == "Limiter"
    makes = makes or (isinstance(node.func, ast.Attribute) and node.func.attr == "Limiter")
    keyed = next((one.value for one in node.keywords if one.arg == "key_func"), next(iter(node.args), None))
    if makes and keyed is not None and not (isinstance(keyed, ast.Name) and keyed.id in _BY_ADDRESS):
        yield "RATELIMIT_KEY_FUNC", (Code(), keyed.lineno)
    for one in node.keywords:
        if one.arg is None:
            continue
        if one.arg.startswith("RATELIMIT_"):  # app.config.update(RATELIMIT_DEFAULT=…)
            yield one.arg, (_literal(one.value), one.value.lineno)
        elif makes and one.arg in _ARGUMENTS:
            yield _ARGUMENTS[one.arg], (_literal(one.value), one.value.lineno)


def decorated(tree: ast.Module) -> Iterator[Decorated]:
    """Every limit that decorates a function, in the order of the source."""
    found: list[Decorated] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(value=ast.Call(func=ast.Attribute(attr="shared_limit")) as made) if (
                made.args or made.keywords
            ):
                found.append(_decorator(made, "shared", True))
            case _:
                pass
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call in reversed(node.decorator_list):
            match call:
                case ast.Call(func=ast.Attribute(attr="limit" | "shared_limit" as kind)) if call.args or call.keywords:
                    found.append(_decorator(call, node.name, kind == "shared_limit"))
                case _:
                    pass
    yield from sorted(found, key=lambda one: one.line)


def _decorator(call: ast.Call, function: str, shared: bool) -> Decorated:
    named = {one.arg: one.value for one in call.keywords if one.arg is not None}
    words = call.args[0] if call.args else named.pop("limit_value", None)
    scope = _literal(named["scope"]) if shared and "scope" in named else None
    name = scope if isinstance(scope, str) else function
    options = tuple(option for option in named if option != "scope")
    return Decorated(name, Code() if words is None else _literal(words), shared, options, call.lineno)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Code()
