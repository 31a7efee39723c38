"""``grant``: flexible costs lowered to what fits now."""

from __future__ import annotations

import pytest

from headway.core.bill import grant
from headway.core.fixed_window import FixedWindow, Window

RULES = [FixedWindow(10, 100), FixedWindow(4, 100)]
USED = [Window(1_100, 3), Window(1_100, 2)]


def test_the_tightest_flexible_limit_lowers_all_flexible_costs() -> None:
    """Costs that are not flexible stay, and their limits cut nothing; no cost is raised."""
    assert grant(RULES, USED, [9, 9], 1_020, flexible=[True, True]) == (2, 2)
    assert grant(RULES, USED, [9, 9], 1_020, flexible=[True, False]) == (7, 9)
    assert grant(RULES, USED, [9, 9], 1_020, flexible=[False, False]) == (9, 9)
    assert grant(RULES, [None, None], [1, 9], 1_020, flexible=[True, True]) == (1, 4)


def test_a_shadow_limit_cuts_nothing_and_is_cut_along() -> None:
    """It is asked for what the others leave; alone it is asked for everything."""
    assert grant(RULES, USED, [9, 9], 1_020, flexible=[True, True], shadows=[False, True]) == (7, 7)
    assert grant(RULES, USED, [9, 9], 1_020, flexible=[True, True], shadows=[True, True]) == (9, 9)


def test_what_is_one_per_charge_is_given_one_per_charge() -> None:
    """Lists of different lengths are a mistake, not a shorter bill."""
    for costs, flexible in (([9, 9], [True]), ([9, 9], [True, True, True]), ([9], [True, True])):
        with pytest.raises(ValueError, match="zip"):
            grant(RULES, USED, costs, 1_020, flexible=flexible)
    with pytest.raises(ValueError, match="zip"):
        grant(RULES, USED, [9, 9], 1_020, flexible=[True, True], shadows=[True])


def test_where_nothing_fits_one_unit_is_asked_for() -> None:
    """So that the refusal tells the wait for one."""
    assert grant(RULES, [Window(1_100, 10), None], [9, 9], 1_020, flexible=[True, True]) == (1, 1)
