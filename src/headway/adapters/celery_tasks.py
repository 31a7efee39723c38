"""Limits for Celery tasks that hold over all workers: a task that is refused comes back exactly when it may run.

Celery's own ``rate_limit`` holds in each worker by itself, and keeps what has to wait in the worker's memory.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

try:
    from celery import current_task  # type: ignore[import-untyped]  # celery ships no types
    from celery.exceptions import Retry  # type: ignore[import-untyped]  # the same
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.celery_tasks needs Celery: pip install 'headway[celery]'", name=error.name
    ) from error

from headway.errors import ConfigError, RateLimited
from headway.limiter.decision import Decision
from headway.limiter.decorate import AttributeSource, CostSource, keep, request_of
from headway.limiter.limiter import Limiter

__all__ = ["come_back", "limit"]

P = ParamSpec("P")
R = TypeVar("R")

_MILLISECOND = 1_000_000


def limit(
    limiter: Limiter,
    *,
    cost: CostSource = 1,
    jitter: float = 0.5,
    longest: float | None = None,
    **attributes: AttributeSource,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Ask before each run of a task: ``@app.task`` above ``@limit(limiter, account="customer_id")``.

    A task that is refused is sent again with the exact wait as its countdown, and ends as RETRY; it does not block the
    worker, and it spends none of the task's own ``max_retries``. One that no wait helps fails with ``RateLimited``; so
    does one that is not run by a worker (called, or eager), because nobody could bring it back.

    Args:
        limiter: on a store that all workers share; a memory store counts in each process by itself.
        cost: units, or a function of the call's arguments by name.
        jitter: each wait is longer by up to that share of it, at random, so that what waits does not come back at once;
            0 or more.
        longest: seconds after which a waiting task comes back to ask again, however long its wait is. Redis and SQS
            deliver a message twice that waits longer than their visibility timeout (one hour unless it is set): choose
            less than that. None waits as long as it takes.
        attributes: for those that no parameter is named like: a parameter's name, or a function of the call's arguments
            by name.

    Raises:
        TypeError: a limiter that is none, or an ``AsyncLimiter``.
        LimitError: an attribute that nothing gives.
        ConfigError: a jitter or a longest wait that cannot be right.
    """
    if not isinstance(limiter, Limiter):
        raise TypeError(f"limit(): limiter is of type {type(limiter).__name__}; expected Limiter: tasks cannot await")
    _check_waits(jitter, longest)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        request = request_of(function, limiter.plan.attributes, attributes, cost)

        def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            facts, units = request(args, kwargs)
            decision = limiter.hit(facts, cost=units)
            if not decision.allowed:
                raise come_back(decision, jitter=jitter, longest=longest)
            try:
                return function(*args, **kwargs)
            finally:
                if limiter.plan.holds:
                    limiter.release(decision)

        kept = keep(limited, function)
        kept.__signature__ = inspect.signature(function)  # which Celery checks arguments by
        return cast("Callable[P, R]", kept)

    return decorate


def come_back(decision: Decision, *, jitter: float = 0.5, longest: float | None = None) -> Exception:
    """Send the running task again for the time when it may run; what is to be raised, to end this run.

    For tasks that ask the limiter themselves: ``raise come_back(decision)``.

    Args:
        decision: a refusal.
        jitter: see ``limit``.
        longest: see ``limit``.

    Returns:
        Celery's ``Retry``; or ``RateLimited`` where no wait helps, or where no worker runs the task.

    Raises:
        ConfigError: a jitter or a longest wait that cannot be right.
    """
    _check_waits(jitter, longest)
    task: Any = current_task._get_current_object() if current_task else None
    request = None if task is None else task.request
    wait = decision.retry_after_ns
    if request is None or wait is None or request.called_directly or request.is_eager:
        return RateLimited(decision)
    countdown = -(-wait // _MILLISECOND) / 1000
    countdown *= 1 + random.uniform(0, jitter)  # noqa: S311  # nobody is kept out by guessing it
    if longest is not None:
        countdown = min(countdown, longest)
    # Not task.retry: that counts, and waiting for one's turn is no failure.
    again = task.signature_from_request(request, countdown=countdown, retries=request.retries)
    again.apply_async()
    return cast(Exception, Retry(exc=RateLimited(decision), when=countdown, sig=again))


def _check_waits(jitter: float, longest: float | None) -> None:
    if not 0 <= jitter < float("inf"):
        raise ConfigError(f"{jitter!r}; expected a share of the wait, 0 or more", key="jitter")
    if longest is not None and not longest > 0:
        raise ConfigError(f"{longest!r}; expected seconds above 0, or None", key="longest")
