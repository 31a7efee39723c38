"""``Problems``: what is wrong with a policy file, all of it, each with its file, line and key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from headway.errors import ConfigError, ExtraMissing
from headway.policy.locate import KeyPath
from headway.policy.spelling import nearest

__all__ = ["Problems", "dotted"]

_BARE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Problems:
    """Collects problems and warnings.

    Args:
        file: the file's name, as given.
        lines: where each key stands; a key without a line is reported on the line of what holds it.
    """

    def __init__(self, file: str, lines: Mapping[KeyPath, int]) -> None:
        self.file = file
        self.lines = lines
        self.errors: list[ConfigError] = []
        self.warnings: list[ConfigError] = []

    def __len__(self) -> int:
        """How many problems there are; warnings do not count."""
        return len(self.errors)

    def add(self, path: KeyPath, problem: str) -> None:
        """Note what is wrong with the key at ``path``."""
        self.errors.append(self._placed(path, problem))

    def lack(self, path: KeyPath, missing: ExtraMissing) -> None:
        """Note that what ``path`` asks for needs an extra that is not installed."""
        self.errors.append(
            ExtraMissing(missing.what, missing.extra, file=self.file, line=self.line(path), key=dotted(path))
        )

    def warn(self, path: KeyPath, warning: str) -> None:
        """Note what is legal at ``path`` and hardly meant."""
        self.warnings.append(self._placed(path, warning))

    def unknown_keys(
        self, table: Mapping[str, object], path: KeyPath, known: Mapping[str, str], hints: Mapping[str, str]
    ) -> None:
        """Note every key of ``table`` that is not known.

        Args:
            table: the table.
            path: where it stands.
            known: the accepted keys.
            hints: what to say to certain unknown keys instead of a nearest spelling.
        """
        for key in table:
            if key not in known:
                hint = f"; {hints[key]}" if key in hints else self.proposal(nearest(key, known))
                self.add((*path, key), f"unknown key {key!r}; expected one of {', '.join(known)}{hint}")

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest thing around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    @staticmethod
    def proposal(spelling: str | None) -> str:
        """The end of a message that proposes a spelling, or nothing."""
        return f"; did you mean {spelling!r}?" if spelling else ""

    def _placed(self, path: KeyPath, problem: str) -> ConfigError:
        return ConfigError(problem, file=self.file, line=self.line(path), key=dotted(path) or None)


def dotted(path: KeyPath) -> str:
    """A path as people write it: ``policies.codes.limits[0].quota``; keys are quoted where TOML asks for it."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            key = part if part and _BARE.issuperset(part) else json.dumps(part, ensure_ascii=False)
            shown += f".{key}" if shown else key
    return shown
