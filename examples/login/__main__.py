"""Run it: ``uv run python -m examples.login [PORT]``."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import uvicorn

from examples.login.app import Settings, create_app
from examples.login.users import Users

FOLDER = Path("login")


def main() -> None:
    """Serve on this machine only, with one account whose password is new each time."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    key = FOLDER / "secret-key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(32))
    users, password = Users(FOLDER / "users.db"), secrets.token_hex(4)
    users.add("demo", password)
    sys.stdout.write(f"The account is demo, its password {password}\n")
    sys.stdout.flush()
    settings = Settings(f"sqlite:///{FOLDER / 'limits.db'}", users, key.read_bytes(), secure_cookies=False)
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8002
    uvicorn.run(create_app(settings), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
