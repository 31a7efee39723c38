"""A draft as the text of a policy file, with the notes as comments where they belong."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headway.analysis.convert.draft import Draft, LimitDraft, Note, PolicyDraft

__all__ = ["policy_file"]

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH: Final = 100
_Notes = dict[tuple[str, str], list[Note]]
"""By policy and limit."""


def policy_file(draft: Draft) -> str:
    """The policy file: every note is a comment that begins with ``NOT EXACT``."""
    name = _printable(draft.file)
    lines = [f"# Converted from {draft.origin}{'' if name == '-' else f' ({name})'} by headway convert."]
    for comment in draft.comments:
        lines += _comment(comment)
    noted: _Notes = {(policy.name, limit.name): [] for policy in draft.policies for limit in policy.limits}
    only = draft.policies[0].name if len(draft.policies) == 1 else ""
    for note in draft.notes:
        place = (only or note.policy, note.limit)
        if place in noted:
            noted[place].append(note)
        else:
            lines += _noted(note)
    lines += ["", f"store = {_value(draft.store or 'memory://')}"]
    for policy in draft.policies:
        lines += _policy(policy, noted)
    return "\n".join(lines) + "\n"


def _policy(policy: PolicyDraft, noted: _Notes) -> Iterator[str]:
    yield ""
    for comment in policy.comments:
        yield from _comment(comment)
    table = f"policies.{_key(policy.name)}"
    if policy.exempt or not policy.limits:
        yield f"[{table}]"
        if policy.exempt:
            yield f"exempt = {_value(policy.exempt)}"
        if not policy.limits:
            yield "limits = []"
        yield ""
    for place, limit in enumerate(policy.limits):
        if place:
            yield ""
        yield from _limit(limit, table, noted[policy.name, limit.name])


def _limit(limit: LimitDraft, table: str, notes: Iterable[Note]) -> Iterator[str]:
    yield f"[[{table}.limits]]"
    for comment in limit.comments:
        yield from _comment(comment)
    for note in notes:
        yield from _noted(note)
    yield f"name = {_value(limit.name)}"
    for key, value in limit.keys.items():
        if value is not None:
            yield f"{key} = {_value(value)}"


def _noted(note: Note) -> list[str]:
    where = f" (line {note.line})" if note.line is not None else ""
    return _comment(f"NOT EXACT{where}: {note.what}")


def _comment(text: str) -> list[str]:
    """A comment, wrapped; nothing in it ends the line it stands on."""
    return textwrap.wrap(_printable(text), _WIDTH, initial_indent="# ", subsequent_indent="# ") or ["#"]


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{"".join(map(_in_quotes, value))}"'
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(f'{_key(str(key))} = {_value(inner)}' for key, inner in value.items())} }}"
        case _:
            raise TypeError(f"{value!r} has no place in a policy file")


def _printable(text: str) -> str:
    """A space for whatever ends a line, steers a terminal, turns the direction of writing or has no encoding."""
    return "".join(char if char.isprintable() else " " for char in text)


def _in_quotes(char: str) -> str:
    """A character of a basic string; what is not printable is written as an escape, half a surrogate pair as U+FFFD."""
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
