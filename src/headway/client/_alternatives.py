"""``Alternatives``: whether a text has one of many phrases, each of them looked for only where its letters are.

`re` tries every branch of an alternation at every character; looking for a branch's letters first, with `in`, costs a
hundredth of that. So a text made of nothing but beginnings of phrases costs hardly more than any other.
"""

import re
from collections.abc import Iterator

_MIN_LETTERS = 2


class Alternatives:
    """The branches of one pattern, for texts in lower case.

    Args:
        pattern: a regular expression in lower case; its outermost branches are tried one by one.
    """

    __slots__ = ("_branches",)

    def __init__(self, pattern: str) -> None:
        self._branches = tuple((letters(one), re.compile(one)) for one in branches(pattern))

    def search(self, text: str) -> bool:
        """Whether a text has one of the phrases."""
        return any(needed in text and branch.search(text) is not None for needed, branch in self._branches)


def branches(pattern: str) -> Iterator[str]:
    """Yield what stands between the outermost bars of a pattern."""
    start = 0
    for at, sign in _outermost(pattern):
        if sign == "|":
            yield pattern[start:at]
            start = at + 1
    yield pattern[start:]


def letters(branch: str) -> str:
    """Return the longest run of plain characters that every text must have which a branch matches; empty for none."""
    best = run = ""
    for _, sign in _outermost(branch):
        if sign[0] in "?*{":
            run = run[:-1]
        if len(sign) == 1 and (sign.isalnum() or sign in " -/:_'"):
            run += sign
            continue
        best, run = max(best, run, key=len), ""
    best = max(best, run, key=len)
    return best if len(best) >= _MIN_LETTERS else ""


def _outermost(pattern: str) -> Iterator[tuple[int, str]]:
    """Yield place and sign of everything outside groups; groups, sets and escapes are one sign each."""
    at = 0
    while at < len(pattern):
        end = _end(pattern, at)
        yield at, pattern[at:end]
        at = end


def _end(pattern: str, at: int) -> int:
    """Return where the sign ends that begins at a place."""
    sign = pattern[at]
    if sign == "\\":
        return at + 2
    if sign == "{":
        return pattern.index("}", at) + 1
    if sign == "[":
        return pattern.index("]", at + 2) + 1
    if sign == "(":
        at += 1
        while pattern[at] != ")":
            at = _end(pattern, at)
        return at + 1
    return at + 1
