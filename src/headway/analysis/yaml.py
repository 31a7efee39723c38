"""YAML and JSON documents with the line of every value, for whoever says what is wrong with one.

Nothing in a document runs: only YAML's plain types are made. What a document expands to is bounded, aliases included.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from headway.errors import ConfigError

try:
    import yaml
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("reading YAML needs PyYAML: pip install 'headway[yaml]'", name=error.name) from error

__all__ = ["Located", "read_yaml"]

_MOST: Final = 500_000
_DEEPEST: Final = 200
_MOST_BITS: Final = 10_000
"""Of a whole number: Python prints about so many, and 0xff… and 1:59:59… hold more without being longer than allowed."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Located:
    """A document's value, and where its parts stand.

    Attributes:
        value: mappings, lists and scalars, as ``json.loads`` would give them.
        lines: the line, from 1, of each part by its path of keys and indices.
    """

    def __init__(self, value: Any, lines: Mapping[tuple[Hashable, ...], int]) -> None:
        self.value = value
        self._lines = lines

    def line(self, *path: Hashable) -> int | None:
        """The line of a part, or of the nearest part around it that is known; None for no document."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)


def read_yaml(text: str, file: str) -> Located:
    """Read one document.

    Args:
        text: YAML or JSON.
        file: what messages call it.

    Raises:
        ConfigError: with the line: text that is no YAML, several documents, a key that comes twice, a type that is not
            plain, or more than half a million values.
    """
    try:
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            reader = _Reader(loader, file)
            value = reader.read(node, ()) if node is not None else None
            return Located(value, reader.lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        problem = error.problem or error.context or "cannot be read"
        raise ConfigError(f"is not YAML: {problem}", file=file, line=line) from error
    except yaml.YAMLError as error:  # a character that no YAML may hold
        raise ConfigError(f"is not YAML: {str(error).splitlines()[0]}", file=file) from error
    except RecursionError as error:
        raise ConfigError("is nested too deeply", file=file) from error


class _Reader:
    """From nodes to values, counting as it goes."""

    def __init__(self, loader: Any, file: str) -> None:
        self.lines: dict[tuple[Hashable, ...], int] = {}
        self._loader = loader
        self._file = file
        self._count = 0

    def read(self, node: Any, path: tuple[Hashable, ...]) -> Any:
        self._count += 1
        line = node.start_mark.line + 1
        if self._count > _MOST or len(path) > _DEEPEST:
            raise ConfigError(
                f"expands to more than {_MOST} values, or is nested more than {_DEEPEST} deep",
                file=self._file,
                line=line,
            )
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(inner, (*path, index)) for index, inner in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: Any, path: tuple[Hashable, ...]) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                merged = {**self._merge(value_node, path), **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError("has a key that is no plain text", file=self._file, line=line)
            key = self._scalar(key_node)
            if key in own:
                raise ConfigError(f"has the key {key!r} twice", file=self._file, line=line)
            own[key] = self.read(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return {**merged, **own}

    def _merge(self, node: Any, path: tuple[Hashable, ...]) -> dict[Any, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[Any, Any] = {}
        for part in parts:
            value = self.read(part, (*path, "<<"))
            if not isinstance(value, dict):
                line = part.start_mark.line + 1
                raise ConfigError("merges with << what is no mapping", file=self._file, line=line)
            found = {**value, **found}
        return found

    def _scalar(self, node: Any) -> Any:
        try:
            value = self._loader.construct_object(node, deep=True)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            # a ValueError for a date such as 2024-02-30; the others are how PyYAML fails at !!bool x and !!timestamp x
            said = str(error) if isinstance(error, ValueError) else f"{node.value[:60]!r} is no {node.tag[-40:]}"
            raise self._unreadable(node, said) from error
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise self._unreadable(node, f"a whole number of {value.bit_length()} bits")
        return value

    def _unreadable(self, node: Any, problem: str) -> ConfigError:
        line = node.start_mark.line + 1
        return ConfigError(f"holds a value that cannot be read: {problem}", file=self._file, line=line)
