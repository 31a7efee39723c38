"""One limit's states in memory, and the ring in which its keys are looked at for recovery."""

from __future__ import annotations

from collections import deque

from headway.core.key import Key
from headway.core.rule import Rule, State

__all__ = ["Table"]


class Table:
    """The states of one limit.

    Attributes:
        states: by key; None where a key was reset and its place in the ring is not given up yet.
        ring: holds each key of ``states`` once, in the order in which they are looked at for recovery.
        rule: of the limit's rules the one that remembers longest, the latest of equals; says when a state has recovered.
    """

    __slots__ = ("_memory", "ring", "rule", "states")

    def __init__(self, rule: Rule) -> None:
        self.states: dict[Key, State | None] = {}
        self.ring: deque[Key] = deque()
        self.rule = rule
        self._memory = 0

    def judge(self, rule: Rule, memory: int) -> None:
        """Another rule of the limit: keys of several quotas may be here, so none is forgotten earlier than any says.

        Args:
            rule: the rule.
            memory: ns for which it may need a state that nothing is added to; only its order counts.
        """
        if memory >= self._memory:
            self.rule, self._memory = rule, memory

    def drop_recovered(self, now: int, looks: int) -> int:
        """Look at the next ``looks`` keys of the ring and forget those that owe nothing; how many were forgotten."""
        dropped = 0
        for _ in range(min(looks, len(self.ring))):
            key = self.ring.popleft()
            state = self.states[key]
            if state is None or self.rule.expires_at(state) <= now:
                del self.states[key]
                dropped += 1
            else:
                self.ring.append(key)
        return dropped
