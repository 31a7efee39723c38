"""The colours of every picture, for light and for dark paper.

Series are told apart by dashes too. Text stands out from its paper by at least 7:1, lines by at least 4.5:1 (WCAG 2.2).
"""

from __future__ import annotations

from typing import Final

__all__ = ["DASHES", "INK", "LINES", "MARK", "MARK_DASHES", "PAPER", "SERIES", "SOFT", "Colour", "dark_style"]

Colour = tuple[str, str]
"""On light paper, on dark paper."""

PAPER: Final[Colour] = ("#ffffff", "#16161a")
INK: Final[Colour] = ("#1b1b1f", "#ececf1")
SOFT: Final[Colour] = ("#4a4a54", "#bdbdc7")
"""Labels and captions."""
LINES: Final[Colour] = ("#d9d9df", "#3a3a42")
"""Grid and borders: they carry no meaning."""
MARK: Final[Colour] = ("#b00020", "#ff8a80")
"""A limit's line."""

SERIES: Final[tuple[Colour, ...]] = (
    ("#0b57d0", "#8ab4ff"),
    ("#a84300", "#ffb07c"),
    ("#00695c", "#5fd8c0"),
    ("#7b2d8b", "#dda6ee"),
    ("#6b5900", "#e3cb5a"),
    ("#a3165f", "#ff9ccb"),
    ("#37474f", "#b5c7d0"),
    ("#00658a", "#6fd3f7"),
    ("#4e5d00", "#c6d867"),
    ("#8c2f2f", "#ffa9a0"),
    ("#4b3fa8", "#b9b2ff"),
    ("#2e6b2e", "#96d996"),
)
DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
"""Lengths of line and gap, in line widths; series after the fourth begin anew."""
MARK_DASHES: Final[tuple[tuple[float, ...], ...]] = ((4, 2), (1.5, 1.5), (9, 3), (6, 2, 1.5, 2))


def dark_style(prefix: str = "") -> str:
    """CSS rules that give everything drawn in a light colour its dark one: class ``f…`` fills, class ``k…`` strokes.

    Args:
        prefix: goes before each selector, such as ".chart ".
    """
    return "".join(
        f"{prefix}.f{light[1:]}{{fill:{dark}}}{prefix}.k{light[1:]}{{stroke:{dark}}}"
        for light, dark in (PAPER, INK, SOFT, LINES, MARK, *SERIES)
    )
