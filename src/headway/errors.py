"""Every exception headway raises. Being over quota is not an error: it is a decision.

The tree, by who is at fault::

    HeadwayError
    ├── QuotaError (ValueError)          the caller: a quota that cannot be read or cannot be right
    ├── LimitError (ValueError)          the caller: a limit, cost or combination that cannot be right
    │   └── AttributeUnexpected          the caller: an attribute value that no tier or comparison knows
    ├── AttributeMissing (ValueError)    the caller: a request without an attribute that a limit needs
    ├── AttributeUnusable (TypeError)    the caller: an attribute value that cannot be part of a key
    ├── UnknownName (KeyError)           the caller: no limit or policy of that name
    ├── ConfigError (ValueError)         the operator: file, line, key and what was expected
    │   └── ExtraMissing                 the operator: something that `pip install 'headway[…]'` brings
    ├── StoreError                       the store: away, broken, full
    │   ├── StoreUnavailable             cannot be reached, or did not answer in time
    │   ├── StoreFull                    bounded memory holds nothing but active keys
    │   └── StoreUnusable                not ours: no database, a newer schema, no permission
    ├── RateLimited                      a refused call of a decorator, a ``with`` block, a view, a task or a pace
    │   └── DeadlineTooSoon              a client's wait for its own quota cannot end before its deadline
    └── RateLimitedError                 a client gave up on somebody else's refusals
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from headway.client.attempt import Attempt
    from headway.client.rejection import Rejection
    from headway.limiter.decision import Decision

__all__ = [
    "AttributeMissing",
    "AttributeUnexpected",
    "AttributeUnusable",
    "ConfigError",
    "DeadlineTooSoon",
    "ExtraMissing",
    "HeadwayError",
    "LimitError",
    "QuotaError",
    "RateLimited",
    "RateLimitedError",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnusable",
    "UnknownName",
]


def kind_of(value: object) -> str:
    """What a value is, for a message: "an int", "a str"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" else f"a {name}"


class HeadwayError(Exception):
    """The root of everything headway raises on purpose."""


class QuotaError(HeadwayError, ValueError):
    """A quota's or a duration's text or numbers cannot be right.

    Attributes:
        text: what was given.
        position: index into ``text`` of the first character that does not fit, or None where no place applies.
    """

    def __init__(self, text: str, problem: str, *, position: int | None = None, kind: str = "quota") -> None:
        self.text = text
        self.position = position
        shown = text if len(text) <= 120 else text[:117] + "..."
        place = ""
        if position is not None:
            rest = text[position : position + 24]
            place = f" at character {position + 1}, {rest!r}," if rest else " at its end,"
        super().__init__(f"{kind} {shown!r}:{place} {problem}")


class LimitError(HeadwayError, ValueError):
    """A limit, a cost or a combination of limits cannot be right."""


class AttributeUnexpected(LimitError):
    """An attribute has a value that no tier is named by, or that cannot be compared with a number.

    Attributes:
        attribute: its name.
        limit: the limit that looked at it.
    """

    def __init__(self, attribute: str, limit: str, problem: str) -> None:
        self.attribute = attribute
        self.limit = limit
        super().__init__(f"limit {limit!r}: attribute {attribute!r} {problem}")


class AttributeMissing(HeadwayError, ValueError):
    """A request lacks an attribute that a limit is keyed by, or that its quota or its conditions depend on.

    Attributes:
        attribute: the missing name.
        limit: the limit that asks for it, or None where something else does.
    """

    def __init__(self, attribute: str, limit: str | None, given: tuple[str, ...], *, need: str = "is keyed by") -> None:
        self.attribute = attribute
        self.limit = limit
        had = ", ".join(sorted(map(str, given))) or "none"
        asks = "the policy needs" if limit is None else f"limit {limit!r} {need}"
        super().__init__(f"{asks} {attribute!r}, which this request does not have (it has: {had})")


class AttributeUnusable(HeadwayError, TypeError):
    """An attribute's value cannot be part of a key: only str, int, UUID, bytes and tuples of these can."""

    def __init__(self, attribute: str, value: object, problem: str | None = None) -> None:
        self.attribute = attribute
        what = problem or f"is {kind_of(value)}"
        super().__init__(f"attribute {attribute!r} {what}; a key is made of str, int, UUID, bytes or a tuple of these")


class UnknownName(HeadwayError, KeyError):
    """No limit or policy has that name."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        self.message = f"no {kind} is named {name!r}; known: {', '.join(known) or 'none'}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class ConfigError(HeadwayError, ValueError):
    """A policy file, a store URL or a setting is wrong.

    Attributes:
        file: the file's name as given, or None where the text did not come from a file.
        line: the line, counted from 1, or None where it is not known.
        key: the dotted key, or None.
    """

    def __init__(
        self, problem: str, *, file: str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.key = key
        place = ":".join(str(part) for part in (file, line) if part is not None)
        head = ": ".join(part for part in (place, key) if part)
        super().__init__(f"{head}: {problem}" if head else problem)


class ExtraMissing(ConfigError):
    """Something needs an extra that is not installed; the message says how to install it.

    Attributes:
        what: what needs it.
        extra: its name, such as ``analysis``.
    """

    def __init__(
        self, what: str, extra: str, *, file: str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        self.what = what
        self.extra = extra
        super().__init__(
            f"{what} needs an extra that is not installed: pip install 'headway[{extra}]'",
            file=file, line=line, key=key,
        )  # fmt: skip


class StoreError(HeadwayError):
    """The store could not decide; the limit's ``on_store_failure`` says what happens to the request."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or did not answer within its deadline."""


class StoreFull(StoreError):
    """A bounded store holds nothing but keys that still owe, so a new key has no place."""


class StoreUnusable(StoreError):
    """What the URL names cannot serve as a store: no database, a newer schema, no permission."""


class RateLimited(HeadwayError):
    """A call that cannot return a refusal met one: a decorated function, a ``with`` block, a view, a task, a pace.

    Attributes:
        decision: the whole decision: which limit, the wait, every outcome.
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(decision.sentence())

    def __reduce__(self) -> tuple[type[RateLimited], tuple[Decision]]:
        return (type(self), (self.decision,))


class DeadlineTooSoon(RateLimited):
    """A wait that cannot end before its deadline; raised at once, with the time it would take.

    Attributes:
        decision: the refusal; it is not sent, and nothing was charged.
        retry_after: seconds the wait would take; ``math.inf`` when no wait helps.
        retry_at: when it would end, on the store's clock; None when no wait helps.
        at_most: the time is an upper bound: what somebody else holds ("1 at once") may be given back earlier.
    """

    @property
    def at_most(self) -> bool:
        """The time is an upper bound: what somebody else holds may be given back earlier."""
        return bool(getattr(self.decision.binding, "at_most", False))

    @property
    def retry_after(self) -> float:
        """Seconds the wait would take; ``math.inf`` when no wait helps."""
        return self.decision.retry_after

    @property
    def retry_at(self) -> datetime | None:
        """When the wait would end, on the store's clock (UTC); None when no wait helps."""
        return self.decision.retry_at


class RateLimitedError(HeadwayError):
    """A client gave up on somebody else's refusals. Its text is the sentence, and why it stopped.

    Attributes:
        rejection: the last refusal, as it was read.
        why: why no further attempt was made, as a sentence.
        history: every attempt, oldest first.
        response: the last response, as the client library made it, with its body; None in a pickled copy.
        body: the last response's body.
    """

    def __init__(
        self, rejection: Rejection, why: str, history: Sequence[Attempt] = (), response: object = None
    ) -> None:
        self.rejection = rejection
        self.why = why
        self.history = tuple(history)
        self.response = response
        self.body = rejection.body
        super().__init__(f"{rejection.sentence()} {why}")

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait from the last refusal on; None where the service did not say."""
        return self.rejection.retry_after

    @property
    def retry_at(self) -> datetime | None:
        """The same instant on the caller's clock."""
        return self.rejection.retry_at

    def __reduce__(self) -> tuple[type[RateLimitedError], tuple[object, ...]]:
        return (type(self), (self.rejection, self.why, self.history))
