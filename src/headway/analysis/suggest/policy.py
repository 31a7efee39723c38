"""The proposals as a policy file: a policy for each goal, with what is known of it as comments."""

from __future__ import annotations

import re
from typing import Final

from headway.analysis.access_log import method_and_path
from headway.analysis.figures import counted
from headway.analysis.logs.block import printable
from headway.analysis.suggest.proposals import Proposal
from headway.analysis.suggest.suggestion import Suggestion

__all__ = ["ATTRIBUTES", "policy_name", "policy_toml"]

ATTRIBUTES: Final = {"network": "address", "address": "address", "user": "user", "api_key": "api_key"}
"""What a request's attribute is called for each key of a client. An address is counted by its /64 by every adapter."""


def policy_toml(found: Suggestion, match: str | None = None) -> str:
    """A policy file that ``headway check-policy`` accepts.

    Args:
        found: at least one proposal is in it.
        match: which requests are to be limited.
    """
    head = [
        f"# Suggested from {counted(found.requests, 'request')} of {counted(found.clients, 'client')}.",
        *([f"# Not the whole log: {printable(found.partial, 200)}."] if found.partial else []),
        *(f"# Note: {printable(warning, 300)}." for warning in found.warnings),
        "",
        'store = "memory://"  # state of this process alone; see the reference for SQLite, Redis and PostgreSQL',
    ]
    return (
        "\n".join([*head, *(line for proposal in found.proposals for line in _policy(proposal, found, match))]) + "\n"
    )


def policy_name(proposal: Proposal) -> str:
    """What the policy of a proposal is called."""
    return proposal.goal.name


def _policy(proposal: Proposal, found: Suggestion, match: str | None) -> list[str]:
    name = policy_name(proposal)
    trial = proposal.trial
    share = f" ({trial.refused / found.requests:.2%})" if found.requests else ""
    lines = [
        "",
        f"# {proposal.goal}: would have refused {counted(trial.refused, 'request')}{share} of {counted(len(trial.clients), 'client')}.",
        *(f"# Note: {note}." for note in proposal.notes),
    ]
    keys = found.by.split("_or_")
    if proposal.each is not None:
        for place, key in enumerate(keys):
            attribute = ATTRIBUTES[key]
            conditions = _conditions(match)
            conditions += [f"{ATTRIBUTES[before]} = {{ missing = true }}" for before in keys[:place]]
            if place < len(keys) - 1:
                conditions.append(f"{attribute} = {{ missing = false }}")
            lines += [
                "",
                f"[[policies.{name}.limits]]",
                f'name = "per-{attribute.replace("_", "-")}"',
                f'quota = "{proposal.each}"',
                f'by = "{attribute}"',
                *(["secret = true"] if key == "api_key" else []),
                *([f"when = {{ {', '.join(conditions)} }}"] if conditions else []),
            ]
    if proposal.total is not None:
        conditions = _conditions(match)
        lines += [
            "",
            f"[[policies.{name}.limits]]",
            'name = "everyone"',
            f'quota = "{proposal.total}"',
            *([f'algorithm = "{proposal.algorithm.value}"'] if proposal.algorithm else []),
            *([f"when = {{ {', '.join(conditions)} }}"] if conditions else []),
        ]
    return lines


def _conditions(match: str | None) -> list[str]:
    if match is None or match.strip() == "*":
        return []
    text = match.strip()
    method, path = (part.decode() for part in method_and_path((f"* {text}" if text.startswith("/") else text).encode()))
    found = [] if method == "*" else [f'method = "{_escaped(method.upper())}"']
    return [*found, f'route = "{_escaped(path)}"']


def _escaped(text: str) -> str:
    """A text as TOML's basic strings hold it."""
    return re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\u{ord(found[0]):04X}", text)
