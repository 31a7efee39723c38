"""Mutation testing of one module of ``core/``: what its tests would not notice if somebody broke it.

``uv run --group mutation python scripts/mutate.py gcra reserved`` works on a copy in a temporary folder and prints, for each
module, how many mutants there were and every one that no test killed. ``docs/explanation/mutation-testing.md`` holds
the results, and explains the survivors.
"""

# ruff: noqa: S603, T201  # it prints, and runs what stands here

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
COPIED: Final = ("src", "tests", "benchmarks", "conftest.py", "pyproject.toml", "README.md", "LICENSE")
BESIDE: Final = "core/test_beside_models.py"
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "bill": ("core/test_bill.py", "core/test_grant.py"),
    "block": ("core/test_block.py",),
    "calendar_window": ("core/test_calendar_window.py", BESIDE),
    "change": ("core/test_change.py", "core/test_windows_given_back.py"),
    "charge": ("core/test_key.py",),
    "clearing": ("core/test_clearing.py",),
    "concurrency": ("core/test_concurrency.py", BESIDE),
    "fixed_window": ("core/test_fixed_window.py", "core/test_windows_given_back.py", BESIDE),
    "gcra": ("core/test_gcra.py", "core/test_gcra_vectors.py", "core/test_reserved.py", BESIDE),
    "growing_wait": ("core/test_growing_wait.py", BESIDE),
    "key": ("core/test_key.py",),
    "leaky_bucket": ("core/test_leaky_bucket.py", BESIDE),
    "limit": ("core/test_limit.py", "core/test_limit_fields.py"),
    "outcome": ("core/test_outcome.py",),
    "quota": ("core/test_quota.py", "core/test_quota_errors.py"),
    "reserved": ("core/test_reserved.py",),
    "rule": ("core/test_rules.py",),
    "rules": ("core/test_rules.py",),
    "sliding_log": ("core/test_sliding_log.py", "core/test_windows_given_back.py", BESIDE),
    "sliding_window": ("core/test_sliding_window.py", "core/test_windows_given_back.py", BESIDE),
    "verdict": ("core/test_verdict.py",),
    "zone": ("core/test_zone.py",),
}
"""Which tests have to notice a fault in which module; those that do not exist are left out."""

SETTINGS: Final = """
[tool.mutmut]
source_paths = ["src/headway/"]
only_mutate = ["src/headway/core/{module}.py"]
pytest_add_cli_args_test_selection = [{tests}]
also_copy = ["tests", "benchmarks", "conftest.py", "pyproject.toml"]
"""
SURVIVED: Final = 0
UNTESTED: Final = 33
"""Exit codes by which mutmut remembers what became of a mutant."""

COUNTS: Final = re.compile(r"(\d+)/(\d+)\s+🎉 (\d+) 🫥 (\d+)\s+⏰ (\d+)\s+🤔 (\d+)\s+🙁 (\d+)")


def main(arguments: Sequence[str]) -> int:
    """Print a line a module and its survivors; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of core/: {', '.join(TESTS)} (default: all)")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="how many mutants at a time")
    parser.add_argument("--examples", type=int, default=25, help="that each property gets instead of a hundred")
    parser.add_argument("--show", action="store_true", help="print each survivor's change, too")
    options = parser.parse_args(arguments)
    survived = 0
    for module in options.modules or TESTS:
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            prepared(module, Path(folder), options.examples)
            survived += mutated(module, Path(folder), options.children, show=options.show)
    return int(survived > 0)


def prepared(module: str, folder: Path, examples: int) -> None:
    """A copy in that folder, with mutmut's settings for one module."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    mutated_source = folder / "src" / "headway" / "core" / f"{module}.py"
    mutated_source.write_text(plain_methods(mutated_source.read_text("utf-8")), "utf-8")
    tests = [f"tests/{test}" for test in TESTS[module] if (ROOT / "tests" / test).exists()]
    settings = folder / "pyproject.toml"
    one_process = settings.read_text("utf-8").replace(" -n auto --dist loadgroup", "")  # mutmut forks by itself
    settings.write_text(
        one_process + SETTINGS.format(module=module, tests=", ".join(f'"{test}"' for test in tests)), "utf-8"
    )
    shared = folder / "tests" / "conftest.py"
    shared.write_text(shared.read_text("utf-8").replace("1000 if LONG else 100", str(examples)), "utf-8")


def plain_methods(source: str) -> str:
    """The same module with ``name = property(name)`` below each property: mutmut leaves decorated methods as they are."""
    lines = source.splitlines()
    kinds = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef)]
    for kind in sorted(kinds, key=lambda each: each.lineno, reverse=True):
        if any("Enum" in ast.unparse(base) for base in kind.bases):
            continue
        for method in reversed([each for each in kind.body if isinstance(each, ast.FunctionDef)]):
            decorators = [ast.unparse(each) for each in method.decorator_list]
            if decorators in (["property"], ["cached_property"]) and method.end_lineno:
                lines.insert(method.end_lineno, f"    {method.name} = {decorators[0]}({method.name})")
                del lines[method.lineno - 2]
    return "\n".join(lines) + "\n"


def mutated(module: str, folder: Path, children: int, *, show: bool) -> int:
    """Mutate one module in the copy in that folder; how many mutants survived."""
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
    where = folder / "mutants" / "src" / "headway" / "core" / f"{module}.py"
    found = json.loads(where.with_suffix(".py.meta").read_text("utf-8"))["exit_code_by_key"]
    functions = {
        node.name: node for node in ast.walk(ast.parse(where.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
    }
    for name, code in found.items():
        if code in (SURVIVED, UNTESTED):
            print(f"    {name}: {'survived' if code == SURVIVED else 'no test runs it'}", flush=True)
            if show:
                print("\n".join(changed(functions, name.rsplit(".", 1)[1])), flush=True)
    return survived + untested + odd


def changed(functions: Mapping[str, ast.FunctionDef], name: str) -> list[str]:
    """The lines that a mutant changes."""
    before = ast.unparse(functions[re.sub(r"mutmut_\d+$", "mutmut_orig", name)]).splitlines()[1:]
    after = ast.unparse(functions[name]).splitlines()[1:]
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return [f"        {line}" for line in lines if re.match(r"[-+](?![-+])", line)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
