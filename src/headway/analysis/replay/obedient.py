"""``Obedient``: the same requests from callers who heed a refusal: they come back exactly when they were told to.

A caller that was refused sends nothing until then. With ``keep``, what the log shows of it meanwhile waits its turn and
follows, in its order, as soon as what is before it has passed; with ``drop``, it was the same request tried again by somebody
impatient, and is left out. Who is told to come back at an instant comes before a request that the log has at that instant.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from headway.analysis.replay.side import LogClock, replayable
from headway.analysis.replay.tally import Spread
from headway.core.key import Key
from headway.core.limit import Algorithm
from headway.errors import AttributeMissing, AttributeUnexpected
from headway.limiter.limiter import Limiter
from headway.policy.policy import Policy
from headway.stores.memory import MemoryStore

__all__ = ["DROP", "KEEP", "Obedient"]

KEEP: Final = "keep"
DROP: Final = "drop"

_TRIES_A_REQUEST: Final = 5
_TRIES: Final = 100_000
"""More tries than these are not simulated: a herd that is told one instant comes back together, and is told again."""


class _Request(NamedTuple):
    arrived: int
    attributes: Mapping[str, object]


class Obedient:
    """Simulates obedient callers.

    Args:
        policy: the limits.
        later: ``KEEP`` or ``DROP``: what becomes of a waiting caller's later requests.

    Attributes:
        requests: pieces of work: the log's requests without those that were dropped.
        at_once: how many passed when they came.
        later: by how much the others passed later than the log has them, ns; a queue's delay counts.
        refusals: how many refusals were met, those of callers who came back included.
        dropped: requests that were the same work tried again.
        given_up: requests that no wait helps.
        ended: when the last work passed, ns since 1970; 0 where none did.
        cut: the simulation was stopped because callers came back too often; see ``waiting``.
    """

    def __init__(self, policy: Policy, later: str = KEEP) -> None:
        if later not in (KEEP, DROP):
            raise ValueError(f"obedient is {later!r}; expected {KEEP} or {DROP}")
        kept, _ = replayable(policy)
        self.clock = LogClock()
        self.mode = later
        self.requests = self.at_once = self.refusals = self.dropped = self.given_up = self.ended = 0
        self.later = Spread()
        self.cut = False
        self._keep = later == KEEP
        self._queued = any(limit.algorithm is Algorithm.LEAKY_BUCKET_QUEUE for limit in kept.plain_limits)
        self._limiter = Limiter(
            *kept.limits,
            store=MemoryStore(max_keys=2**62, clock=self.clock),
            namespace=kept.namespace,
            exempt=kept.exempt,
        )
        self._tries = 0
        self._due: list[tuple[int, int, Key]] = []
        self._queues: dict[Key, deque[_Request]] = {}

    @property
    def waiting(self) -> int:
        """How many requests have not passed yet."""
        return sum(map(len, self._queues.values()))

    def arrive(self, caller: Key, attributes: Mapping[str, object], now: int) -> None:
        """A request of the log.

        Args:
            caller: whose; it waits as a whole.
            attributes: what is known of it.
            now: ns since 1970, never less than in an earlier call.
        """
        self._come_back(now)
        queue = self._queues.get(caller)
        if queue is not None and not self._keep:
            self.dropped += 1
            return
        self.requests += 1
        if queue is not None:
            queue.append(_Request(now, attributes))
        else:
            self._try(caller, deque((_Request(now, attributes),)), now)

    def finish(self) -> None:
        """Let everybody who waits come back, after the log's end."""
        self._come_back(None)

    def _come_back(self, until: int | None) -> None:
        due = self._due
        while due and not self.cut and (until is None or due[0][0] <= until):
            now, _, caller = heapq.heappop(due)
            self._try(caller, self._queues[caller], now)

    def _try(self, caller: Key, queue: deque[_Request], now: int) -> None:
        """Send a caller's requests until one is refused."""
        self.clock.now = max(now, self.clock.now)
        while queue:
            request = queue[0]
            self._tries += 1
            try:
                decision = self._limiter.hit(request.attributes)
            except (AttributeMissing, AttributeUnexpected):  # the side beside it counts these
                self.requests -= 1
                queue.popleft()
                continue
            if decision.allowed:
                passed = self.clock.now + (decision.verdict.delay if self._queued else 0)
                if passed > request.arrived:
                    self.later.add(passed - request.arrived)
                else:
                    self.at_once += 1
                self.ended = max(self.ended, passed)
                queue.popleft()
                continue
            self.refusals += 1
            wait = decision.retry_after_ns
            if wait is None:
                self.given_up += 1
                queue.popleft()
                continue
            self._queues[caller] = queue
            heapq.heappush(self._due, (self.clock.now + wait, self._tries, caller))
            self.cut = self.cut or self._tries > _TRIES + _TRIES_A_REQUEST * self.requests
            return
        self._queues.pop(caller, None)
