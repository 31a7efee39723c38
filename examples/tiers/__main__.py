"""Run it: ``uv run python -m examples.tiers [PORT]``."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import uvicorn

from examples.tiers.accounts import Accounts
from examples.tiers.app import Settings, create_app
from examples.tiers.limits import PLANS

FOLDER = Path("tiers")


def main() -> None:
    """Serve on this machine only, with two new accounts each time."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    accounts, token = Accounts(FOLDER / "accounts.db"), secrets.token_hex(16)
    for plan, daily in PLANS.items():
        accounts.set_plan(plan, daily)
    for plan in ("free", "pro"):
        key = secrets.token_hex(16)
        accounts.add(key, plan)
        found = accounts.of_key(key)
        sys.stdout.write(f"account {found.id if found else '?'}, {plan}: {key}\n")
    sys.stdout.write(f"administrator: {token}\n")
    sys.stdout.flush()
    settings = Settings(f"sqlite:///{FOLDER / 'limits.db'}", accounts, token)
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8003
    uvicorn.run(create_app(settings), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
