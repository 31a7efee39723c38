"""Run it: ``uv run python -m examples.llm_budget [PORT]``."""

from __future__ import annotations

import sys

import uvicorn

from examples.llm_budget.app import create_app


def main() -> None:
    """Serve on this machine only; the budget is this process's, in memory."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8004
    uvicorn.run(create_app("memory://"), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
