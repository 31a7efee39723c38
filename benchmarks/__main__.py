"""``python -m benchmarks NAME [arguments]``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Run one benchmark module's ``main`` with the rest of the arguments."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: python -m benchmarks {{{','.join(names)}}} [arguments]", file=sys.stderr)
        return 64
    module = importlib.import_module(f"benchmarks.{sys.argv[1]}")
    result: int | None = module.main(sys.argv[2:])
    return result or 0


if __name__ == "__main__":
    sys.exit(main())
