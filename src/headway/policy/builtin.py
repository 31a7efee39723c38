"""The policy file that ``headway serve`` and ``headway check`` use when they are given none: one-time codes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headway.policy.policy import PolicyFile
from headway.policy.toml import read_policy_text

__all__ = ["BUILTIN_TEXT", "builtin_policies"]

BUILTIN_TEXT: Final = """\
# One-time codes by SMS: every request must pass all four limits.
store = "sqlite:///limits.db"

[[policies.one-time-codes.limits]]
name = "resend"
quota = "1 per 60s"
by = ["phone"]

[[policies.one-time-codes.limits]]
name = "per-phone"
quota = "5 per day"
by = ["phone"]

[[policies.one-time-codes.limits]]
name = "per-ip"
quota = "20 per hour"
by = ["ip"]

[[policies.one-time-codes.limits]]
name = "everyone"
quota = "1000 per day"
"""
"""A policy file to copy from, too."""


def builtin_policies(folder: Path) -> PolicyFile:
    """The built-in policies, with their store in ``folder``."""
    return read_policy_text(BUILTIN_TEXT, file="the built-in policy", folder=folder).policies()
