"""The words of refusals: what they mean, and which codes name a limit."""

import re

import pytest
from tests.client.corpus import cases

from headway.client import _vocabulary
from headway.client._alternatives import Alternatives, branches, letters
from headway.client._body import read_body
from headway.client._vocabulary import Meaning, limit_named_in, meaning, names_a_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("insufficient_quota", Meaning.MONEY),
        ("Your credit balance is too low to access the API.", Meaning.MONEY),
        ("Maximum credits exceeded", Meaning.MONEY),
        ("Usage cap exceeded: Monthly product cap", Meaning.MONEY),
        ("The engine is currently overloaded, please try again later", Meaning.OVERLOAD),
        ("Request cannot be satisfied due to temporary server capacity constraints", Meaning.OVERLOAD),
        ("another API request or process is currently accessing it", Meaning.LOCKED),
        ("Rate exceeded", Meaning.LIMIT),
        ("Please reduce your request rate.", Meaning.LIMIT),
        ("Access denied: you are being rate limited", Meaning.LIMIT),
        ("authenticated requests get a higher rate limit", Meaning.LIMIT),
        ("You have exceeded your quota", Meaning.QUOTA),
        ("Resource has been exhausted (e.g. check quota).", Meaning.QUOTA),
        ("The API has not been used in project 0 before or it is disabled.", Meaning.SETUP),
        ("Please make sure your request has a User-Agent header", Meaning.SETUP),
        ("Resource not accessible by integration", Meaning.FORBIDDEN),
        ("You don't have permission to access this server", Meaning.FORBIDDEN),
        ("The service is down for maintenance", Meaning.TRANSIENT),
        ("Widget not found", None),
    ],
)
def test_words_have_one_meaning(text: str, expected: Meaning | None) -> None:
    """A code or a sentence has the strongest meaning that its words give."""
    assert meaning(text) is expected


def test_looking_for_letters_first_misses_nothing() -> None:
    """A phrase is found in every recorded sentence and code in which its whole pattern finds it."""
    seen = set()
    for case in cases():
        said = read_body(case.body, "", 0.0)
        seen |= {*said.texts, *(code for _, code in said.codes)}
    for kind, pattern in _vocabulary._TABLE:
        whole, phrases = re.compile(pattern), Alternatives(pattern)
        for text in seen:
            lowered = text.lower().replace("_", " ")
            assert phrases.search(lowered) == (whole.search(lowered) is not None), (kind, lowered)


@pytest.mark.parametrize(
    ("branch", "needed"),
    [
        (r"rate\s?-?limits?", "limit"),
        (r"\bqps\b", "qps"),
        (r"abc*def+", "def"),
        (r"(?:one|two)(?:\s|[()|]){0,3}x", ""),
        (r"\d{1,4}ab{2}cd", "cd"),
        (r"[ab|)]hits?|\|", "hit"),
    ],
)
def test_a_branch_needs_its_letters(branch: str, needed: str) -> None:
    """The longest run of letters that no match can be without: none that is optional, in a set or in a group."""
    assert letters(next(branches(branch))) == needed


@pytest.mark.parametrize("code", ["activityLimitReached", "throttle_violation", "RATE_LIMIT_REACHED", "maxlag", "QPS"])
def test_a_telling_code_names_a_limit(code: str) -> None:
    """A code that says more than "too many requests" is a limit's name."""
    assert names_a_limit(code)


@pytest.mark.parametrize(
    "code",
    ["rate_limited", "TOO_MANY_REQUESTS", "insufficient_quota", "E0000047", "429", "urn:x:rateLimited", "banned"],
)
def test_a_general_code_names_none(code: str) -> None:
    """Other words for "rate limited", numbers and URNs name no limit."""
    assert not names_a_limit(code)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TotalRequests Limit exceeded.", "TotalRequests"),
        ("ERROR!!! ThrottleUser", "ThrottleUser"),
        ("You have exceeded a secondary rate limit.", "secondary"),
        ("Rate limit exceeded: free-models-per-day.", "free-models-per-day"),
        ("GitHub says: too many requests", None),
        ("You have reached your pull rate limit.", None),
    ],
)
def test_a_sentence_may_name_its_limit(text: str, name: str | None) -> None:
    """A name inside a sentence is found; a brand or an adjective is none."""
    assert limit_named_in(text) == name
