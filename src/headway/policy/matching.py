"""``AnyOf``: whether a request's attributes are those that somebody wrote down: values, globs, address ranges, bounds.

Values are compared by their text, as keys are (42 ≡ "42"); bytes and tuples equal no text. An attribute that is None is
one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headway.core.limit import Limit
from headway.errors import AttributeMissing, AttributeUnexpected, LimitError
from headway.policy.spelling import described, nearest
from headway.policy.values import Values, many, number_of, wrong_values

__all__ = ["AnyOf", "Condition", "Conditions", "Wanted", "wrong_attribute", "wrong_conditions"]

Wanted: TypeAlias = Mapping[str, object]
"""Conditions by attribute, all of which must be met: a value, a list of values, or a table of ``TESTS``."""

Wrong: TypeAlias = tuple[tuple[str | int, ...], str]
"""Where in what was written, and what is wrong there."""

TESTS: Final = ("is", "not", "at_least", "above", "at_most", "below", "missing")
_BOUNDS: Final = ("at_least", "above", "at_most", "below")
_EXPECTED: Final = f"a value, a list of values, or a table with any of {', '.join(TESTS)}"


@dataclass(frozen=True, slots=True)
class Condition:
    """What one attribute must be.

    Attributes:
        attribute: its name.
        among: it is one of these; None asks nothing.
        outside: it is none of these; None asks nothing.
        bounds: (``at_least``, ``above``, ``at_most`` or ``below``, a number): it is a number within them.
        missing: what a request without it means: True meets the condition, False does not, None is an error. With
            nothing else asked for, the condition is only whether it is missing.
    """

    attribute: str
    among: Values | None = None
    outside: Values | None = None
    bounds: tuple[tuple[str, int | float], ...] = ()
    missing: bool | None = None

    @classmethod
    def of(cls, attribute: str, wanted: object) -> Condition:
        """Read one; ``wrong_conditions`` has found nothing wrong with it."""
        if not isinstance(wanted, Mapping):
            return cls(attribute, Values.of(wanted))
        bounds = tuple((name, wanted[name]) for name in _BOUNDS if name in wanted)
        among, outside = (Values.of(wanted[name]) if name in wanted else None for name in ("is", "not"))
        return cls(attribute, among, outside, bounds, wanted.get("missing"))

    def met(self, value: object, limit: str) -> bool | None:
        """Whether a value meets it; None where the value is missing and nothing is said of that.

        Raises:
            AttributeUnexpected: a value that is no number, where it is to be compared.
        """
        if value is None:
            return self.missing
        if self.among is None and self.outside is None and not self.bounds:
            return not self.missing
        if self.among is not None and value not in self.among:
            return False
        if self.outside is not None and value in self.outside:
            return False
        return not self.bounds or self._within(value, limit)

    def _within(self, value: object, limit: str) -> bool:
        number = number_of(value)
        if number is None:
            name, bound = self.bounds[0]
            raise AttributeUnexpected(
                self.attribute, limit, f"is {value!r}; expected a number, to be compared: {name} {bound}"
            )
        for name, bound in self.bounds:
            match name:
                case "at_least":
                    inside = number >= bound
                case "above":
                    inside = number > bound
                case "at_most":
                    inside = number <= bound
                case _:
                    inside = number < bound
            if not inside:
                return False
        return True

    def __str__(self) -> str:
        parts = [
            *([f"is {self.among}"] if self.among is not None else []),
            *([f"is not {self.outside}"] if self.outside is not None else []),
            *(f"is {name.replace('_', ' ')} {bound}" for name, bound in self.bounds),
        ]
        if not parts:
            return f"{self.attribute} is {'missing' if self.missing else 'given'}"
        return f"{self.attribute} {' and '.join(parts)}{' or missing' if self.missing else ''}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Several conditions, all of which must be met."""

    parts: tuple[Condition, ...]

    def met(self, attributes: Mapping[str, object], limit: str) -> bool:
        """Whether a request meets all; what is missing matters only where the rest is met, in whatever order.

        Raises:
            AttributeMissing: it hangs on an attribute that is not there.
            AttributeUnexpected: see ``Condition.met``.
        """
        missing = None
        for part in self.parts:
            met = part.met(attributes.get(part.attribute), limit)
            if met is None:
                missing = missing or part.attribute
            elif not met:
                return False
        if missing is not None:
            raise AttributeMissing(missing, limit, tuple(attributes), need="depends on")
        return True

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Alternatives, of which one must be met."""

    alternatives: tuple[Conditions, ...]

    @classmethod
    def of(cls, wanted: Wanted | Sequence[Wanted], place: str) -> AnyOf:
        """Read alternatives: ``{"method": ["POST", "PUT"]}``, or a list of such.

        Args:
            wanted: one or several ``Wanted``.
            place: what an error calls where they stand.

        Raises:
            LimitError: names what cannot be right and what is accepted.
        """
        for path, problem in wrong_conditions(wanted):
            where = "".join(f"[{part!r}]" for part in path)
            raise LimitError(f"{place}{where} {problem}")
        tables = [wanted] if isinstance(wanted, Mapping) else wanted
        return cls(tuple(Conditions(tuple(Condition.of(*item) for item in table.items())) for table in tables))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names that are looked at, in order of first use."""
        parts = (part for alternative in self.alternatives for part in alternative.parts)
        return tuple(dict.fromkeys(part.attribute for part in parts))

    @property
    def count(self) -> str:
        """How many alternatives there are, in words."""
        entries = len(self.alternatives)
        return "nobody" if not entries else "1 entry" if entries == 1 else f"{entries} entries"

    def met(self, attributes: Mapping[str, object], limit: str, *, lenient: bool = False) -> bool:
        """Whether a request meets one.

        Args:
            attributes: the request's.
            limit: what an error names.
            lenient: an alternative that hangs on an attribute that is not there is not met, instead of an error.

        Raises:
            AttributeMissing: none is met, and one hangs on an attribute that is not there.
            AttributeUnexpected: none is met, and one compares a value that is no number.
        """
        failed: AttributeMissing | AttributeUnexpected | None = None
        for alternative in self.alternatives:
            try:
                if alternative.met(attributes, limit):
                    return True
            except (AttributeMissing, AttributeUnexpected) as error:
                failed = failed or error
        if failed is not None and not lenient:
            raise failed
        return False

    def __str__(self) -> str:
        return ", or ".join(map(str, self.alternatives))


def wrong_attribute(name: object) -> str | None:
    """What is wrong with the name of an attribute that is no part of a key; None where nothing is."""
    if not isinstance(name, str):
        return f"is {described(name)}; expected the name of an attribute, such as 'plan'"
    try:
        Limit("named", "1/s", by=(name,))
    except LimitError as error:
        return str(error).removeprefix("limit 'named': by ")
    return None


def wrong_conditions(wanted: object) -> Iterator[Wrong]:
    """Everything that is wrong with alternatives: where in them, and what would be accepted."""
    several = many(wanted)
    if several is None:
        yield from _wrong_table(wanted, ())
        return
    for index, table in enumerate(several):
        yield from _wrong_table(table, (index,))


def _wrong_table(table: object, path: tuple[str | int, ...]) -> Iterator[Wrong]:
    if not isinstance(table, Mapping):
        yield path, f'is {described(table)}; expected a table of conditions such as {{ ip = "10.0.0.0/8" }}'
        return
    if not table:
        yield path, "names no attribute, so every request would meet it"
    for attribute, wanted in table.items():
        place = (*path, str(attribute))
        if problem := wrong_attribute(attribute):
            yield place, problem
        if not isinstance(wanted, Mapping):
            yield from _at(place, wrong_values(wanted, _EXPECTED))
        elif not wanted:
            yield place, f"asks for nothing; expected {_EXPECTED}"
        else:
            wrong = [found for name, value in wanted.items() for found in _wrong_test(name, value)]
            yield from _at(place, wrong or _contradiction(wanted))


def _wrong_test(name: object, value: object) -> Iterator[Wrong]:
    match name:
        case "is" | "not":
            yield from _at((name,), wrong_values(value, "a value or a list of values"))
        case "missing":
            if not isinstance(value, bool):
                yield (name,), f"is {described(value)}; expected true or false: what a request without it means"
        case "at_least" | "above" | "at_most" | "below":
            if isinstance(value, str) or number_of(value) is None:
                yield (name,), f"is {described(value)}; expected a number"
        case _:
            meant = nearest(str(name), TESTS)
            hint = f"; did you mean {meant!r}?" if meant else ""
            yield (str(name),), f"unknown test {name!r}; expected one of {', '.join(TESTS)}{hint}"


def _contradiction(wanted: Mapping[str, Any]) -> Iterator[Wrong]:
    """Bounds between which there is no number."""
    least = max(
        ((wanted[name], name == "above", name) for name in ("at_least", "above") if name in wanted), default=None
    )
    most = min(((wanted[name], name != "below", name) for name in ("at_most", "below") if name in wanted), default=None)
    if least and most and (least[0] > most[0] or (least[0] == most[0] and (least[1] or not most[1]))):
        low, high = (f"{name} = {bound}" for bound, _, name in (least, most))
        yield (), f"asks for {low} and {high}; no number is both"


def _at(path: tuple[str | int, ...], found: Iterable[tuple[tuple[str | int, ...], str]]) -> Iterator[Wrong]:
    return (((*path, *inner), problem) for inner, problem in found)
