"""Which kind a refusal is, from all evidence: codes, sentences, the violated limit, then the status."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headway.client._limits import ShownLimit
from headway.client._prose import period_of_name, periods, words
from headway.client._vocabulary import Meaning, meaning, speaks_of_requests
from headway.client.rejection import RejectionKind

_DAY = 86_400.0
_ALWAYS = frozenset([429, 420, 430, 509, 529, 503, 403, 402, 456, 418])
"""Statuses that are refusals by themselves; any other one needs evidence."""

_PROBLEMS = {
    "quota-exceeded": Meaning.LIMIT,
    "temporary-reduced-capacity": Meaning.OVERLOAD,
    "abnormal-usage-detected": Meaning.LIMIT,
}
_GRPC = {
    "UNAVAILABLE": RejectionKind.TRANSIENT,
    "PERMISSION_DENIED": RejectionKind.FORBIDDEN,
    "UNAUTHENTICATED": RejectionKind.MISCONFIGURED,
}
_PASSES = re.compile(
    r"\bwait\b|\btry(?:ing)? again (?:later|soon|in)\b|\b(?:not (?:yet )?|being )(?:been )?(?:completed?|verified|validated)\b"
    r"|\b(?:pending|in progress)\b",
    re.IGNORECASE,
)
"""What a denial says that may pass by itself, such as a key that is still being verified."""
_ASKS_TO_WAIT = re.compile(
    r"\bwait (?:for )?(?:a|an|a few|some|several|a couple of|at least|\d+)\s(?:\w+\s){0,3}?before\b", re.IGNORECASE
)
"""What a limiter says under a status that stands for the caller's own mistakes."""
_LIMITING = (Meaning.MONEY, Meaning.LOCKED, Meaning.OVERLOAD, Meaning.LIMIT)
_OF_A_MOMENT = re.compile(
    r"\b(?:credits?|balance)\b.{0,40}?\b(?:the current|this|each|every|per) (?:second|minute|hour)\b", re.IGNORECASE
)
"""Credits that come back by themselves, soon."""
_ORDER = list(Meaning)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a response says about why it refuses.

    Attributes:
        status: The HTTP status.
        codes: Codes from the body and from error fields.
        texts: Sentences.
        names: What names the violated limit.
        chosen: The violated limit, if one is shown.
        dialect: What the service's documentation says that a code means.
        problem_type: The `type` of a problem document.
        failed: Whether the response declares itself a failure whatever its status.
        hint: The wait stated anywhere but in a limit, seconds.
        says_429: Whether the body carries the status 429.
        grpc: The name of the gRPC status.
    """

    status: int
    codes: list[str]
    texts: list[str]
    names: list[str]
    chosen: ShownLimit | None
    dialect: Meaning | None
    problem_type: str | None
    failed: bool
    hint: float | None
    says_429: bool
    grpc: str | None


def decide(seen: Evidence) -> tuple[RejectionKind, str] | None:
    """Return the kind and the evidence it comes from; None when the response is no refusal."""
    from_codes = _strongest(words(code) for code in seen.codes)
    from_texts = _strongest(seen.texts)
    problem = _problem(seen.problem_type)
    said, source = _combined(seen.dialect, problem, from_codes, from_texts)
    if said not in _LIMITING and seen.problem_type is not None:
        named = meaning(words(_last_part(seen.problem_type)))
        if named in _LIMITING:
            said, source = named, "problem type"
    if seen.says_429 and said not in _LIMITING:
        said, source = Meaning.LIMIT, "body code"
    if said is None and seen.grpc == "RESOURCE_EXHAUSTED":
        said = Meaning.QUOTA
    if seen.status in (400, 401) and said in (None, Meaning.TRANSIENT) and any(map(_ASKS_TO_WAIT.search, seen.texts)):
        said, source = Meaning.LIMIT, "body text"
    if said is Meaning.MONEY and source == "body text" and any(map(_OF_A_MOMENT.search, seen.texts)):
        said = Meaning.LIMIT
    if not _refused(seen, said, source, from_codes):
        return None
    short_name = max(_periods(seen.names), default=_DAY) < _DAY
    if said is Meaning.MONEY and not (source == "body text" and short_name):
        return RejectionKind.QUOTA_EXHAUSTED, source
    if said is Meaning.OVERLOAD:
        return RejectionKind.OVERLOADED, source
    if said is Meaning.LOCKED:
        return RejectionKind.TRANSIENT, source
    exhausted = seen.chosen is not None and seen.chosen.exhausted
    if said in (Meaning.MONEY, Meaning.LIMIT, Meaning.QUOTA) or exhausted or seen.status in (429, 420, 430, 509):
        if said in (Meaning.SETUP, Meaning.FORBIDDEN) and not exhausted and seen.hint is None and seen.status != 429:
            return _denied(said), source
        return _limited(seen, said, source)
    if seen.status in (402, 456):
        return RejectionKind.QUOTA_EXHAUSTED, "status"
    return _otherwise(seen, said, source)


def _combined(
    dialect: Meaning | None, problem: Meaning | None, codes: Meaning | None, texts: Meaning | None
) -> tuple[Meaning | None, str]:
    """Weigh what is said: documentation, problem type and codes first, unless only a sentence speaks of limits."""
    for meaning_, source in ((dialect, "dialect"), (problem, "problem type")):
        if meaning_ is not None:
            return meaning_, source
    if codes in _LIMITING:
        return codes, "body code"
    if texts in _LIMITING:
        return texts, "body text"
    if codes is not None:
        return codes, "body code"
    return texts, "body text" if texts is not None else "status"


def _strongest(texts: Iterable[str]) -> Meaning | None:
    """Return the first meaning, in the order of the vocabulary, that any of the texts has."""
    found = [one for text in texts if (one := meaning(text)) is not None]
    return min(found, key=_ORDER.index, default=None)


def _problem(problem_type: str | None) -> Meaning | None:
    """Return what a problem type of the IETF draft means; hosts are compared leniently."""
    if problem_type is None:
        return None
    return _PROBLEMS.get(_last_part(problem_type))


def _last_part(problem_type: str) -> str:
    """Return the part of a problem type's URI that names the problem."""
    return problem_type.rpartition("#")[2].rpartition("/")[2].rpartition(":")[2]


def _refused(seen: Evidence, said: Meaning | None, source: str, from_codes: Meaning | None) -> bool:
    """Whether a response is a refusal at all: by its status, or because an error speaks of a limit in time."""
    if seen.status in _ALWAYS:
        return True
    if source == "body text" and not any(speaks_of_requests(text) for text in seen.texts):
        return False
    if 200 <= seen.status < 300:
        if not seen.failed:
            return False
        if seen.grpc is not None:
            return seen.grpc in _GRPC or said in _LIMITING or said is Meaning.QUOTA
        return said in _LIMITING or said is Meaning.QUOTA or from_codes in (Meaning.FORBIDDEN, Meaning.SETUP)
    if seen.status < 400:
        return False
    if seen.status in (400, 401) and Meaning.SETUP in (from_codes, said if seen.status == 401 else None):
        return True
    return said in _LIMITING or said is Meaning.QUOTA


def _limited(seen: Evidence, said: Meaning | None, source: str) -> tuple[RejectionKind, str]:
    """Tell a rate from a quota by the period: of the violated limit, of what names it, of the codes, of the text."""
    stated = _periods(seen.names)
    window = seen.chosen.window if seen.chosen is not None else None
    period = max(stated) if stated else window
    if period is not None:
        kind = RejectionKind.QUOTA_EXHAUSTED if period >= _DAY else RejectionKind.RATE_LIMITED
        return kind, source if source != "status" else "limit"
    for text in (*(words(code) for code in seen.codes), *seen.texts):
        short, long = periods(text)
        if short and long:
            soon = seen.hint is not None and seen.hint < _DAY
            return RejectionKind.RATE_LIMITED if soon else RejectionKind.AMBIGUOUS, "body text"
        if long:
            return RejectionKind.QUOTA_EXHAUSTED, "body text"
    if seen.status in (402, 456):
        return RejectionKind.QUOTA_EXHAUSTED, "status"
    if said is Meaning.QUOTA and seen.chosen is None:
        if seen.hint is None:
            return RejectionKind.AMBIGUOUS, source
        if seen.hint > _DAY or seen.status == 403:
            return RejectionKind.QUOTA_EXHAUSTED, source
    if said not in (Meaning.LIMIT, Meaning.QUOTA):
        source = "limit" if seen.chosen else "status"
    return RejectionKind.RATE_LIMITED, source


def _periods(names: list[str]) -> list[float]:
    """Return the periods that names of the violated limit state, in seconds."""
    return [period for name in names if (period := period_of_name(name)) is not None]


def _denied(said: Meaning) -> RejectionKind:
    """Return the kind that waiting doesn't lift."""
    return RejectionKind.MISCONFIGURED if said is Meaning.SETUP else RejectionKind.FORBIDDEN


def _otherwise(seen: Evidence, said: Meaning | None, source: str) -> tuple[RejectionKind, str]:
    """Decide where nothing speaks of a limit: by the status, told apart by what else is said."""
    if seen.grpc in _GRPC:
        return _GRPC[seen.grpc], "grpc-status"
    if seen.status == 529:
        return RejectionKind.OVERLOADED, "status"
    if seen.status == 503:
        return RejectionKind.TRANSIENT, source
    if seen.hint is not None and said is not Meaning.SETUP:
        return RejectionKind.RATE_LIMITED, "status"
    if said in (Meaning.SETUP, Meaning.FORBIDDEN):
        return _denied(said), source
    if seen.status == 403:
        if any(_PASSES.search(text) for text in seen.texts):
            return RejectionKind.AMBIGUOUS, "body text"
        return RejectionKind.FORBIDDEN, "status"
    return RejectionKind.AMBIGUOUS, "status"
