"""Mutation testing of one module of ``core/``: what its tests would not notice if somebody broke it.

``uv run --group mutation python scripts/mutate.py gcra reserved`` works on a copy in a temporary folder and prints, for each
module, how many mutants there were and every one that no test killed. ``docs/explanation/mutation-testing.md`` holds
the results, and explains the survivors.
"""

# ruff: noqa: S603, T201  # it prints, and runs what stands here

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
COPIED: Final = ("src", "tests", "benchmarks", "conftest.py", "pyproject.toml", "README.md", "LICENSE")
RULES: Final = ("properties/test_rules.py", "properties/test_model.py")
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "bill": ("core/test_bill.py", "core/test_grant.py"),
    "block": ("core/test_block.py",),
    "calendar_window": ("core/test_calendar_window.py", *RULES),
    "change": ("core/test_change.py", "core/test_windows_given_back.py"),
    "charge": ("core/test_key.py",),
    "clearing": ("core/test_clearing.py",),
    "concurrency": ("core/test_concurrency.py", *RULES),
    "fixed_window": ("core/test_fixed_window.py", "core/test_windows_given_back.py", *RULES),
    "gcra": ("core/test_gcra.py", "core/test_gcra_vectors.py", "core/test_reserved.py", *RULES),
    "growing_wait": ("core/test_growing_wait.py", *RULES),
    "key": ("core/test_key.py",),
    "leaky_bucket": ("core/test_leaky_bucket.py", *RULES),
    "limit": ("core/test_limit.py",),
    "outcome": ("core/test_outcome.py",),
    "quota": ("core/test_quota.py",),
    "reserved": ("core/test_reserved.py",),
    "rules": ("core/test_rules.py",),
    "sliding_log": ("core/test_sliding_log.py", "core/test_windows_given_back.py", *RULES),
    "sliding_window": ("core/test_sliding_window.py", "core/test_windows_given_back.py", *RULES),
    "verdict": ("core/test_verdict.py",),
    "zone": ("core/test_calendar_window.py",),
}
"""Which tests have to notice a fault in which module; those that do not exist are left out."""

SETTINGS: Final = """
[tool.mutmut]
source_paths = ["src/headway/"]
only_mutate = ["src/headway/core/{module}.py"]
pytest_add_cli_args_test_selection = [{tests}]
also_copy = ["tests", "benchmarks", "conftest.py", "pyproject.toml"]
"""
COUNTS: Final = re.compile(r"(\d+)/(\d+)\s+🎉 (\d+) 🫥 (\d+)\s+⏰ (\d+)\s+🤔 (\d+)\s+🙁 (\d+)")


def main(arguments: Sequence[str]) -> int:
    """Print a line a module and its survivors; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of core/: {', '.join(TESTS)} (default: all)")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="how many mutants at a time")
    parser.add_argument("--show", action="store_true", help="print each survivor's change, too")
    options = parser.parse_args(arguments)
    survived = 0
    for module in options.modules or TESTS:
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            survived += mutated(module, Path(folder), options.children, show=options.show)
    return int(survived > 0)


def mutated(module: str, folder: Path, children: int, *, show: bool) -> int:
    """Mutate one module in a copy in that folder; how many mutants survived."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    tests = [f"tests/{test}" for test in TESTS[module] if (ROOT / "tests" / test).exists()]
    settings = folder / "pyproject.toml"
    one_process = settings.read_text("utf-8").replace(" -n auto --dist loadgroup", "")  # mutmut forks by itself
    settings.write_text(
        one_process + SETTINGS.format(module=module, tests=", ".join(f'"{test}"' for test in tests)), "utf-8"
    )
    mutmut = [sys.executable, "-m", "mutmut"]
    run = subprocess.run(
        [*mutmut, "run", "--max-children", str(children)], cwd=folder, capture_output=True, text=True, check=False
    )
    counts = COUNTS.findall(run.stdout)
    if not counts:
        print(f"{module}: mutmut failed\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        return 1
    _, total, killed, untested, slow, odd, survived = map(int, counts[-1])
    print(f"{module}: {total} mutants, {killed + slow} killed, {survived + untested + odd} survived", flush=True)
    if killed + slow == total:
        return 0
    results = subprocess.run([*mutmut, "results"], cwd=folder, capture_output=True, text=True, check=True).stdout
    for line in filter(None, map(str.strip, results.splitlines())):
        print(f"    {line}", flush=True)
        if show:
            name = line.split(":")[0]
            shown = subprocess.run(
                [*mutmut, "show", name], cwd=folder, capture_output=True, text=True, check=False
            ).stdout
            changed = [each for each in shown.splitlines() if re.match(r"[-+](?![-+])", each)]
            print("\n".join(f"        {each}" for each in changed), flush=True)
    return survived + untested + odd


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
