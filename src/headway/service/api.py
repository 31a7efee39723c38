"""``Api``: every operation of the HTTP service, from a request's body to an ``Answer``; it knows no web framework."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.core.limit import Limit
from headway.errors import AttributeMissing, AttributeUnexpected, LimitError, StoreError, UnknownName
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.shadow import ShadowReport
from headway.policy.choice import Choice, limits_of
from headway.policy.policy import Policy, PolicyFile
from headway.policy.spelling import nearest
from headway.service.answer import Answer, decided, failed
from headway.service.choices import choice_document
from headway.service.fault import Fault
from headway.service.openapi import openapi_document
from headway.service.request import MAX_BATCH, CheckRequest, read_body, read_release, read_request
from headway.stores.base import AsyncStore, Store
from headway.stores.memory import MemoryStore
from headway.stores.url import open_async_store

__all__ = ["Api"]

_log = logging.getLogger("headway.service")


@dataclass(frozen=True, slots=True)
class _Serving:
    """A policy file and its limiters; replaced as a whole, so that a request sees one or the other."""

    file: PolicyFile
    limiters: Mapping[str, AsyncLimiter]


class Api:
    """The policies of one file over one store.

    Args:
        file: the policies.
        store: where all of them keep their state; ``close`` closes it.
        secret_key: see ``AsyncLimiter``.

    Raises:
        LimitError: a secret limit without a key.
    """

    def __init__(self, file: PolicyFile, store: Store | AsyncStore, secret_key: bytes | None = None) -> None:
        if secret_key is None and isinstance(store, MemoryStore) and "HEADWAY_SECRET_KEY" not in os.environ:
            secret_key = secrets.token_bytes(32)  # one for all limiters to come: a reload must not change any key
        self.store: AsyncStore = open_async_store(store)
        self.secret_key = secret_key
        self._serving = _Serving(file, {name: self._limiter(policy) for name, policy in file.policies.items()})
        self._probe = AsyncLimiter(Limit("ready", "1/s"), store=self.store, namespace="headway:ready")
        self._away = False

    @property
    def file(self) -> PolicyFile:
        """The policy file that is served now."""
        return self._serving.file

    @property
    def limiters(self) -> Mapping[str, AsyncLimiter]:
        """The limiters that decide now, by policy."""
        return self._serving.limiters

    def replace(self, file: PolicyFile, secret_key: bytes | None = None) -> None:
        """Serve another file's policies over the same store, all from one moment on.

        Keys keep their state, requests under way end by the policies they began with, and a policy that is the same
        keeps its limiter.

        Args:
            file: the policies, with the same store and namespace.
            secret_key: for a file that has secret attributes where the earlier one had none.

        Raises:
            LimitError: a secret limit without a key; nothing has changed.
        """
        self.secret_key = self.secret_key or secret_key
        old = self._serving
        self._serving = _Serving(
            file,
            {
                name: old.limiters[name] if old.file.policies.get(name) == policy else self._limiter(policy)
                for name, policy in file.policies.items()
            },
        )

    def _limiter(self, policy: Policy) -> AsyncLimiter:
        return AsyncLimiter(
            *policy.limits,
            store=self.store,
            namespace=policy.namespace,
            secret_key=self.secret_key,
            exempt=policy.exempt,
        )

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
        serving = self._serving  # one for a whole batch, whatever a reload does meanwhile
        return await _each(
            body, lambda item, where: self._decide_one(serving, item, where, commit, accept_language), "decision"
        )

    async def give_back(self, body: bytes, *, renew: bool) -> Answer:
        """End one lease, or an array of them in order; with ``renew`` let them last their whole time from now."""
        serving = self._serving
        return await _each(body, lambda item, where: self._give_back_one(serving, item, where, renew), "lease")

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
                        "limits": [self._limit_document(policy.name, limit) for limit in policy.limits],
                        **({"exempt": str(policy.exempt)} if policy.exempt else {}),
                    }
                    for policy in self.file.policies.values()
                ]
            },
        )

    def shadow(self) -> Answer:
        """What shadow limits would have refused, by policy; policies without any are left out."""
        reports = self._shadow_reports().items()
        return Answer.of(200, {"policies": [{"name": name, **report.to_dict()} for name, report in reports]})

    def shadow_lines(self) -> list[str]:
        """The same for an operator's log, a line a limit and tier; none where there is no shadow limit."""
        reports = self._shadow_reports().items()
        return [f"shadow limit {name}/{count}" for name, report in reports for count in report.counts]

    def _shadow_reports(self) -> Mapping[str, ShadowReport]:
        reports = {name: limiter.shadow_report() for name, limiter in self._serving.limiters.items()}
        return {name: report for name, report in reports.items() if report.counts}

    def openapi(self) -> Answer:
        """The description of this API, OpenAPI 3.1."""
        return Answer.of(200, openapi_document())

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    async def _decide_one(
        self, serving: _Serving, item: object, where: str, commit: bool, accept_language: str | None
    ) -> Answer:
        request = read_request(item, where)
        if isinstance(request, Fault):
            return failed(request)
        limiter = serving.limiters.get(request.policy)
        if limiter is None:
            return failed(_unknown(request.policy, serving.limiters, where))
        ask = limiter.hit if commit else limiter.peek
        try:
            decision = await ask(request.attributes, cost=request.cost)
        except AttributeMissing as error:
            takes = ", ".join(serving.file.policies[request.policy].attributes)
            place = f"{where}/attributes/{error.attribute}"
            return failed(Fault(422, str(error), "urn:headway:missing-attribute", f"the attributes {takes}", place))
        except AttributeUnexpected as error:
            place = f"{where}/attributes/{error.attribute}"
            return failed(Fault(422, str(error), "urn:headway:invalid-request", "a value that the policy knows", place))
        except (LimitError, UnknownName) as error:
            names = ", ".join(limit.name for limit in limiter.limits if limit.cost is None) or "none"
            expected = f"a whole number, or numbers by limit name; limits without a fixed cost: {names}"
            return failed(Fault(422, str(error), "urn:headway:invalid-request", expected, f"{where}/cost"))
        self._note(decision, request)
        return decided(decision, request.policy, accept_language=accept_language)

    async def _give_back_one(self, serving: _Serving, item: object, where: str, renew: bool) -> Answer:
        held = read_release(item, where)
        if isinstance(held, Fault):
            return failed(held)
        limiter = serving.limiters.get(held.policy)
        if limiter is None:
            return failed(_unknown(held.policy, serving.limiters, where, "lease"))
        decision = held.decision(serving.file.policies[held.policy])
        if decision is None:
            problem = f"policy {held.policy!r} has no limit any more that this lease is of"
            return failed(Fault(422, problem, "urn:headway:invalid-request", "a lease of its limits", f"{where}/lease"))
        try:
            done = await (limiter.renew(decision) if renew else limiter.release(decision))
        except StoreError as error:
            problem = f"the store does not answer, and the lease expires by itself: {error}"
            return failed(Fault(503, problem, expected="another try", headers=(("Retry-After", "1"),)))
        return Answer.of(200, {"renewed" if renew else "released": done})

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

    def _limit_document(self, policy: str, part: Limit | Choice) -> dict[str, Any]:
        limit = limits_of(part)[0]
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
            **choice_document(part),
            **({"would_have_refused": self._would_have_refused(policy, limit.name)} if limit.shadow else {}),
        }

    def _would_have_refused(self, policy: str, limit: str) -> int:
        return self._serving.limiters[policy].shadow_report().of(limit).would_refuse


async def _each(body: bytes, one: Callable[[object, str], Awaitable[Answer]], member: str) -> Answer:
    """Answer a body: one request, or an array of them in order.

    Args:
        body: the request's.
        one: answers one, given its JSON and a pointer to it.
        member: where in a batch's element the answer is.
    """
    found = read_body(body)
    if isinstance(found, Fault):
        return failed(found)
    if not isinstance(found, list):
        return await one(found, "")
    if len(found) > MAX_BATCH:
        problem = f"the batch has {len(found)} requests"
        return failed(Fault(413, problem, "urn:headway:too-large", f"at most {MAX_BATCH} requests in one batch"))
    return Answer.of(200, [(await one(item, f"/{index}")).in_batch(member) for index, item in enumerate(found)])


def _unknown(policy: str, known: Mapping[str, object], where: str, member: str = "policy") -> Fault:
    meant = nearest(policy, known)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return Fault(
        404,
        f"no policy is named {policy!r}{hint}",
        "urn:headway:unknown-policy",
        f"one of {', '.join(known)}",
        f"{where}/{member}",
    )
