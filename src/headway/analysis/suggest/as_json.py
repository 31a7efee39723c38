"""A suggestion as JSON: numbers as numbers, times as ISO 8601 in UTC, waits in seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from headway.analysis.suggest.goals import HonestGoal, StopTopGoal
from headway.analysis.suggest.kinds import HONEST, Kind
from headway.analysis.suggest.proposals import Proposal
from headway.analysis.suggest.suggestion import Distribution, Named, Suggestion
from headway.core.quota import MICROSECOND, SECOND

__all__ = ["as_json", "said_time"]


def as_json(found: Suggestion, most: int | None = None) -> dict[str, Any]:
    """All of it.

    Args:
        found: the suggestion.
        most: how many refused clients each proposal lists; None for all.
    """
    return {
        "partial": bool(found.partial),
        **({"partial_because": found.partial} if found.partial else {}),
        "lines": found.lines,
        "unparsed": found.unparsed,
        "first_unparsed": [fault._asdict() for fault in found.first_unparsed],
        "requests": found.requests,
        "clients": found.clients,
        "by": found.by,
        "from": said_time(found.span[0]) if found.span else None,
        "until": said_time(found.span[1]) if found.span else None,
        "warnings": found.warnings,
        "distribution": [_distribution(distribution) for distribution in found.distributions],
        "routes": [_distribution(distribution, "route") for distribution in found.routes],
        "smallest_without_refusal": found.smallest,
        "kinds": [
            {
                "kind": kind.kind.value,
                "clients": kind.clients,
                "requests": kind.requests,
                "examples": [_named(named) for named in kind.examples],
            }
            for kind in found.kinds
        ],
        "shared_addresses": [shared._asdict() for shared in found.shared_addresses],
        "proposals": [_proposal(proposal, found, most) for proposal in found.proposals],
    }


def said_time(ns: int) -> str:
    """``2015-10-25T03:11:25Z``, with a fraction where there is one."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // MICROSECOND)
    return at.isoformat().replace("+00:00", "Z")


def _distribution(distribution: Distribution, called: str = "key") -> dict[str, Any]:
    return {
        called: distribution.key,
        "requests": distribution.requests,
        "clients" if called == "route" else "keys": distribution.keys,
        "windows": {name: histogram.summary() for name, histogram in distribution.windows.items()},
    }


def _named(named: Named) -> dict[str, Any]:
    facts = named.facts
    return {
        "client": named.client,
        "kind": named.kind.value,
        "evidence": list(named.evidence),
        "requests": facts.requests,
        "busiest_minute": facts.busiest_minute,
        "agents": facts.agents,
        "users": facts.users,
        "first": said_time(facts.first),
        "last": said_time(facts.last),
    }


def _proposal(proposal: Proposal, found: Suggestion, most: int | None) -> dict[str, Any]:
    trial = proposal.trial
    listed = trial.clients[:most]
    kinds = [found.named[client.client].kind for client in trial.clients if client.client in found.named]
    return {
        "goal": str(proposal.goal),
        "policy": proposal.goal.name,
        "limits": [
            {"name": limit.name, "quota": str(limit.quota), "by": list(limit.by), "algorithm": limit.algorithm.value}
            for limit in proposal.limits(found.by)
        ],
        "smallest": str(proposal.tight or proposal.each)
        if isinstance(proposal.goal, HonestGoal | StopTopGoal)
        else None,
        "notes": list(proposal.notes),
        "refused": {
            "requests": trial.refused,
            "share": trial.refused / found.requests if found.requests else 0.0,
            "clients": len(trial.clients),
            "honest_clients": sum(kind in HONEST for kind in kinds),
            "by_kind": {kind.value: kinds.count(kind) for kind in Kind if kind in kinds},
            "by_limit": {
                limit.name: count for limit, count in zip(proposal.limits(found.by), trial.by_limit, strict=True)
            },
        },
        "waits_s": {
            "p50": trial.wait(Fraction(1, 2)) / 1000,
            "p95": trial.wait(Fraction(95, 100)) / 1000,
            "max": _seconds(trial.longest),
        },
        "would_refuse": [
            {
                "client": (named := found.named[client.client]).client,
                "kind": named.kind.value,
                "evidence": list(named.evidence),
                "requests": named.facts.wanted,
                "refused": client.refused,
                "longest_wait_s": _seconds(client.longest),
                "first": said_time(client.first),
                "last": said_time(client.last),
                "agents": named.facts.agents,
                "users": named.facts.users,
            }
            for client in listed
            if client.client in found.named
        ],
    }


def _seconds(ns: int) -> float:
    return -(-ns // 1_000_000) / (SECOND // 1_000_000)
