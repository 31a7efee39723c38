"""Which dialects go together."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from headway.errors import ConfigError
from headway.presentation.dialect import Dialect, check_dialects


def test_names_and_members_are_the_same() -> None:
    """A dialect is given by its name or its member, one alone or several, each counted once, in a fixed order."""
    assert check_dialects("draft11") == (Dialect.DRAFT11,)
    assert check_dialects(["draft6", Dialect.DRAFT11, "draft6"]) == (Dialect.DRAFT11, Dialect.DRAFT6)
    assert check_dialects([]) == check_dialects("none") == (Dialect.NONE,)


@pytest.mark.parametrize("bad", ["draft-11", "DRAFT11", "", ["draft11", "x"], [None]])
def test_an_unknown_dialect_names_the_known_ones(bad: str) -> None:
    """A name that is no dialect is refused with the list of those that are."""
    with pytest.raises(ConfigError, match="expected one or several of draft11, draft12-preview, draft7"):
        check_dialects(bad)


@pytest.mark.parametrize(
    ("pair", "field"),
    [
        (("draft11", "draft7"), "RateLimit,"),
        (("draft7", "draft12-preview"), "RateLimit,"),
        (("x-ratelimit-epoch", "x-ratelimit-delta"), "X-RateLimit-Reset"),
        (("none", "draft11"), "excludes"),
    ],
)
def test_two_meanings_of_one_field_exclude_each_other(pair: tuple[str, str], field: str) -> None:
    """Two dialects that would give one field two meanings are refused, and the field is named."""
    with pytest.raises(ConfigError, match=field):
        check_dialects(pair)


def test_every_other_combination_is_accepted() -> None:
    """Exactly the combinations without a clash are accepted, whatever their size."""
    clashes = [{"draft11", "draft7"}, {"draft12-preview", "draft7"}, {"x-ratelimit-epoch", "x-ratelimit-delta"}]
    for chosen in chain.from_iterable(combinations(Dialect, size) for size in range(1, 8)):
        names = {dialect.value for dialect in chosen}
        if any(clash <= names for clash in clashes) or ("none" in names and len(names) > 1):
            with pytest.raises(ConfigError):
                check_dialects(chosen)
        else:
            assert check_dialects(chosen) == chosen
