"""Run it: ``uv run python -m examples.one_time_codes [PORT]``."""

from __future__ import annotations

import os
import secrets
import sys
import time
from pathlib import Path

import uvicorn

from examples.one_time_codes.app import Settings, create_app

FOLDER = Path("one-time-codes")


def main() -> None:
    """Serve on this machine only; codes are printed, not sent."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    settings = Settings(
        store=f"sqlite:///{FOLDER / 'limits.db'}",
        codes=FOLDER / "codes.db",
        secret_key=_secret_key(),
        now=time.time,
        send=_print,
    )
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8001
    uvicorn.run(create_app(settings), host="127.0.0.1", port=port, log_level="warning")


def _print(phone: str, code: str, channel: str) -> None:
    sys.stdout.write(f"{channel} to {phone}: your code is {code}\n")
    sys.stdout.flush()


def _secret_key() -> bytes:
    """The environment's, or one that is made once and kept: with a new one all counters would begin anew."""
    given = os.environ.get("HEADWAY_SECRET_KEY")
    if given:
        return given.encode()
    path = FOLDER / "secret-key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(secrets.token_bytes(32))
    return path.read_bytes()


if __name__ == "__main__":
    main()
