"""``Api``: every operation of the HTTP service, from a request's body to an ``Answer``; it knows no web framework."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from headway.core.limit import Limit
from headway.errors import AttributeMissing, LimitError, UnknownName
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.policy.policy import PolicyFile
from headway.policy.spelling import nearest
from headway.service.answer import Answer, decided, failed
from headway.service.fault import Fault
from headway.service.openapi import openapi_document
from headway.service.request import MAX_BATCH, CheckRequest, read_body, read_request
from headway.stores.base import AsyncStore, Store
from headway.stores.url import open_async_store

__all__ = ["Api"]

_log = logging.getLogger("headway.service")


class Api:
    """The policies of one file over one store.

    Args:
        file: the policies.
        store: where all of them keep their state; ``close`` closes it.
        secret_key: see ``AsyncLimiter``.

    Raises:
        LimitError: a secret limit without a key.
    """

    def __init__(self, file: PolicyFile, store: Store, secret_key: bytes | None = None) -> None:
        self.file = file
        self.store: AsyncStore = open_async_store(store)
        self.limiters: Mapping[str, AsyncLimiter] = {
            name: AsyncLimiter(*policy.limits, store=self.store, namespace=policy.namespace, secret_key=secret_key)
            for name, policy in file.policies.items()
        }
        self._probe = AsyncLimiter(Limit("ready", "1/s"), store=self.store, namespace="headway:ready")
        self._away = False

    @property
    def place(self) -> str:
        """What keeps the state, as people read it: the file, or the store's URL."""
        inner = getattr(self.store, "store", self.store)
        return str(getattr(inner, "path", self.file.store))

    async def decide(self, body: bytes, *, commit: bool, accept_language: str | None = None) -> Answer:
        """Answer one request, or an array of them in order; each is atomic by itself.

        Args:
            body: the request's body.
            commit: charge what is admitted; False only looks.
            accept_language: the request's field, for the sentence of a refusal.
        """
        found = read_body(body)
        if isinstance(found, Fault):
            return failed(found)
        if not isinstance(found, list):
            return await self._decide_one(found, "", commit, accept_language)
        if len(found) > MAX_BATCH:
            problem = f"the batch has {len(found)} requests"
            return failed(Fault(413, problem, "urn:headway:too-large", f"at most {MAX_BATCH} requests in one batch"))
        answers = [
            (await self._decide_one(item, f"/{index}", commit, accept_language)).in_batch()
            for index, item in enumerate(found)
        ]
        return Answer.of(200, answers)

    def health(self) -> Answer:
        """The process runs; touches neither limits nor the store."""
        return Answer.of(200, {"status": "ok"})

    async def ready(self) -> Answer:
        """Whether the store decides now; a peek, so nothing is written."""
        decision = await self._probe.peek()
        if decision.degraded is None:
            return Answer.of(200, {"status": "ready"})
        return failed(
            Fault(503, f"the store cannot decide: {decision.degraded}", "urn:headway:not-ready", "a store that answers")
        )

    def policies(self) -> Answer:
        """Which policies there are, with their limits."""
        return Answer.of(
            200,
            {
                "policies": [
                    {
                        "name": policy.name,
                        "attributes": list(policy.attributes),
                        "limits": [_limit_document(limit) for limit in policy.limits],
                    }
                    for policy in self.file.policies.values()
                ]
            },
        )

    def openapi(self) -> Answer:
        """The description of this API, OpenAPI 3.1."""
        return Answer.of(200, openapi_document())

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    async def _decide_one(self, item: object, where: str, commit: bool, accept_language: str | None) -> Answer:
        request = read_request(item, where)
        if isinstance(request, Fault):
            return failed(request)
        limiter = self.limiters.get(request.policy)
        if limiter is None:
            return failed(self._unknown(request.policy, where))
        ask = limiter.hit if commit else limiter.peek
        try:
            decision = await ask(request.attributes, cost=request.cost)
        except AttributeMissing as error:
            takes = ", ".join(self.file.policies[request.policy].attributes)
            place = f"{where}/attributes/{error.attribute}"
            return failed(Fault(422, str(error), "urn:headway:missing-attribute", f"the attributes {takes}", place))
        except (LimitError, UnknownName) as error:
            names = ", ".join(limit.name for limit in limiter.limits if limit.cost is None) or "none"
            expected = f"a whole number, or numbers by limit name; limits without a fixed cost: {names}"
            return failed(Fault(422, str(error), "urn:headway:invalid-request", expected, f"{where}/cost"))
        self._note(decision, request)
        return decided(decision, accept_language=accept_language)

    def _unknown(self, policy: str, where: str) -> Fault:
        meant = nearest(policy, self.limiters)
        hint = f"; did you mean {meant!r}?" if meant else ""
        known = ", ".join(self.limiters)
        return Fault(
            404,
            f"no policy is named {policy!r}{hint}",
            "urn:headway:unknown-policy",
            f"one of {known}",
            f"{where}/policy",
        )

    def _note(self, decision: Decision, request: CheckRequest) -> None:
        """Say once an outage that the store does not decide, and once that it does again."""
        if decision.degraded is not None and not self._away:
            _log.warning(
                "the store does not decide (%s); on_store_failure does, first for policy %s",
                decision.degraded,
                request.policy,
            )
        elif decision.degraded is None and self._away:
            _log.warning("the store decides again")
        self._away = decision.degraded is not None


def _limit_document(limit: Limit) -> dict[str, Any]:
    return {
        "name": limit.name,
        "quota": str(limit.quota),
        "by": list(limit.by),
        "algorithm": limit.algorithm.value,
        "count": limit.quota.count,
        "burst": limit.quota.burst,
        "period_ms": -(-limit.quota.period_ns // 1_000_000),
        "cost": limit.cost,
        "on_store_failure": limit.on_store_failure.value,
        "shadow": limit.shadow,
    }
