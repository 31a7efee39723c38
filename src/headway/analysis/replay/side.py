"""``Side``: a policy that a log's requests are put to, decided by ``Limiter`` itself on a memory store, on the log's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headway.analysis.replay.tally import LimitTally
from headway.core.key import Key
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted, Refused
from headway.errors import AttributeMissing, AttributeUnexpected
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.plan import Plan
from headway.policy.choice import limits_of
from headway.policy.policy import Policy
from headway.stores.memory import MemoryStore

__all__ = ["EXEMPT", "LogClock", "Ruling", "Side", "replayable"]

_MOST_KEYS: Final = 2**62


class LogClock:
    """The clock of a store that lives in a log's time.

    Attributes:
        now: ns since 1970.
    """

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        """Ns since 1970."""
        return self.now


class Ruling(NamedTuple):
    """What a side said to a request.

    Attributes:
        allowed: it passes.
        limit: the binding limit of a refusal; None where it passes.
        key: that limit's key; None where it passes.
        wait: what a refusal told, ns; None for never, 0 where it passes.
    """

    allowed: bool
    limit: str | None = None
    key: Key | None = None
    wait: int | None = 0


EXEMPT: Final = Ruling(True)
_ADMITTED: Final = Ruling(True)


def replayable(policy: Policy) -> tuple[Policy, tuple[str, ...]]:
    """The policy without the limits on requests at once, which a log cannot tell, and the names of those."""
    left_out = [part for part in policy.limits if limits_of(part)[0].algorithm is Algorithm.CONCURRENCY]
    kept = tuple(part for part in policy.limits if part not in left_out)
    return Policy(policy.name, kept, policy.namespace, policy.exempt), tuple(part.name for part in left_out)


class Side:
    """Decides, and tallies what it decides.

    Args:
        policy: the limits; see ``replayable``.

    Attributes:
        policy: the policy, without what cannot be replayed.
        left_out: the names of its limits that cannot.
        requests: how many were decided, exempt ones included.
        refused: how many of them were refused.
        exempt: how many of them were exempt.
        undecided: how many could not be decided, by the attribute that they lack or that says nothing to a limit.
        limits: a tally for each limit, in the policy's order.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.left_out = replayable(policy)
        self.clock = LogClock()
        self.requests = self.refused = self.exempt = 0
        self.undecided: Counter[str] = Counter()
        self.limits: dict[str, LimitTally] = {part.name: LimitTally() for part in self.policy.limits}
        limits = self.policy.limits
        self._limiter = Limiter(
            *limits, store=MemoryStore(max_keys=_MOST_KEYS, clock=self.clock), namespace=policy.namespace
        )
        self._hit: Callable[..., Decision] = self._limiter.hit
        self._plan: Plan = self._limiter.plan
        self._tallies = list(self.limits.values())
        self._plain = all(isinstance(part, Limit) for part in limits)
        self._shadows = any(limits_of(part)[0].shadow for part in limits)

    def decide(
        self, attributes: Mapping[str, object], now: int, behind: str | None = None, caller: Key | None = None
    ) -> Ruling | None:
        """Decide a request, and charge it if it is admitted.

        Args:
            attributes: what is known of it.
            now: ns since 1970, never less than in an earlier call.
            behind: a value to be counted behind its keys.
            caller: who is told, for limits without a key.

        Returns:
            None where it could not be decided.
        """
        exempt = self.policy.exempt
        if exempt is not None and exempt(attributes):
            self.requests += 1
            self.exempt += 1
            return EXEMPT
        self.clock.now = now
        try:
            decision = self._hit(**attributes)
        except (AttributeMissing, AttributeUnexpected) as error:
            self.undecided[error.attribute] += 1
            return None
        self.requests += 1
        if self._plain and len(decision.verdict.limits) == len(self._tallies):
            tallies, keys = self._tallies, self._plan.keys(attributes)
        else:
            limits = decision.verdict.limits
            tallies = [self.limits[limit.name] for limit in limits]
            keys = [self._plan.key(limit, attributes) for limit in limits]
        for tally, key in zip(tallies, keys):  # noqa: B905  # one key per limit
            requests = tally.requests  # LimitTally.ask in line: every request comes here
            requests[key] = requests.get(key, 0) + 1
            if behind is not None:
                tally.behind.setdefault(key, set()).add(behind)
        if decision.allowed and not self._shadows:
            return _ADMITTED
        verdict = decision.verdict
        bound = None if decision.allowed else verdict.bound
        for index, outcome in enumerate(verdict.outcomes):
            if not isinstance(outcome, Admitted):
                wait = outcome.retry_after if isinstance(outcome, Refused) else None
                tallies[index].refuse(keys[index], now, wait, binds=index == bound)
                if caller is not None and keys[index] == ():
                    tallies[index].callers[caller] += 1
        if bound is None:
            return _ADMITTED
        self.refused += 1
        return Ruling(False, verdict.limits[bound].name, keys[bound], verdict.retry_after)
