"""What ``import headway`` does to a program."""

from __future__ import annotations

import subprocess
import sys


def _in_a_fresh_interpreter(program: str) -> str:
    """What ``program`` prints in an interpreter that takes every warning for an error."""
    command = [sys.executable, "-I", "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_import_warns_of_nothing_and_prints_nothing() -> None:
    """``python -W error -c "import headway"`` is silent."""
    assert _in_a_fresh_interpreter("import headway") == ""


def test_import_needs_only_the_standard_library() -> None:
    """A decision, its sentence and its header fields load no third-party module."""
    program = """
import sys
before = set(sys.modules)
import headway
codes = headway.Limiter(headway.Limit("resend", "1 per 60s", by="phone"))
codes.hit(phone="1")
refused = codes.hit(phone="1")
refused.sentence(), refused.headers(), refused.problem()
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
own = {"headway", *sys.stdlib_module_names}
print(*sorted(name for name in loaded - own if not name.startswith("_sysconfigdata")))
"""
    assert _in_a_fresh_interpreter(program).split() == []
