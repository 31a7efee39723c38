"""Who may import whom, and what the pure packages may import at all."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PURE = ("core", "presentation")
IMPURE = {"asyncio", "logging", "os", "random", "secrets", "socket", "sqlite3", "threading", "time"}
ALSO = {
    "testing/plugin.py": "pytest",
    "stores/postgres/sync.py": "psycopg",
    "stores/postgres/aio.py": "psycopg",
    "stores/postgres/aio_connections.py": "psycopg",
    "stores/postgres/borrowed.py": "psycopg",
    "stores/postgres/connections.py": "psycopg",
    "stores/postgres/places.py": "psycopg",
    "adapters/rest_framework.py": "rest_framework",
}
"""Modules whose name does not say what they need: what pytest asks for, and the packages called after their server."""

TOUCHED = {
    "analysis/logs/sources.py": ("imports os",),  # opens the logs, and asks the system whether one is a pipe
    "analysis/compare/patterns.py": ("imports random",),  # a generator of its own, from a stated seed
}
"""What of the analysis is not pure, and why."""

CLOCKS = {"now", "utcnow", "today"}


def test_import_contracts_hold(root: Path) -> None:
    """Imports point inwards only: the contracts of .importlinter hold."""
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    linted = subprocess.run([sys.executable, "-c", script, "--no-cache"], cwd=root, capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_every_sub_package_has_a_layer(root: Path, sources: dict[Path, ast.Module]) -> None:
    """A new sub-package or top-level module is given a layer, on the page too, before it can exist."""
    contracts = configparser.ConfigParser()
    contracts.read(root / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    page = (root / "docs/explanation/architecture.md").read_text("utf-8")
    for name in {path.parts[0].removesuffix(".py") for path in sources} - {"__init__", "__main__"}:
        assert name in layers
        assert f"`{name}" in page


def test_the_parts_of_the_analysis_are_on_the_page(root: Path, sources: dict[Path, ast.Module]) -> None:
    """Each package of stores is named on the architecture's page; each part of the analysis has a row of its table."""
    page = (root / "docs/explanation/architecture.md").read_text("utf-8")
    rows = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    parts = {path.parts[1].removesuffix(".py") for path in sources if path.parts[0] == "analysis"} - {"__init__"}
    for name in parts:
        assert f"`{name}`" in rows
    for name in {path.parts[1] for path in sources if path.parts[0] == "stores" and len(path.parts) > 2}:
        assert f"`stores.{name}`" in page


def test_the_analysis_asks_for_no_time_and_opens_no_connection(sources: dict[Path, ast.Module]) -> None:
    """The analysis reads no clock and prints nothing; where it touches files or random numbers is listed with a reason."""
    broken = [
        f"{path}:{line}: {what}"
        for path, tree in sources.items()
        if path.parts[0] == "analysis"
        for line, what in _impurities(tree)
        if what not in TOUCHED.get(path.as_posix(), ())
    ]
    assert not broken


def test_the_pure_contract_names_every_impure_module(root: Path) -> None:
    """The contract and the test below forbid the same modules."""
    contracts = configparser.ConfigParser()
    contracts.read(root / ".importlinter")
    assert set(contracts["importlinter:contract:pure"]["forbidden_modules"].split()) == IMPURE
    assert contracts["importlinter:contract:pure"]["source_modules"].split() == [f"headway.{name}" for name in PURE]


def test_pure_packages_read_no_clock_and_do_no_io(sources: dict[Path, ast.Module]) -> None:
    """Core and presentation import nothing impure, not even inside a function, and ask no class for the time."""
    broken = [
        f"{path}:{line}: {what}"
        for path, tree in sources.items()
        if path.parts[0] in PURE
        for line, what in _impurities(tree)
    ]
    assert not broken


def test_impurities_are_seen_wherever_they_hide() -> None:
    """The check above sees an import inside a function, a submodule, an alias, a clock's method, open and print."""
    hidden = """
def now():
    from asyncio.events import get_running_loop
    import os.path as folder, json
    return datetime.now(), date.today(), open("x"), print("y"), rounding.now
"""
    assert [what for _, what in _impurities(ast.parse(hidden))] == [
        "imports asyncio.events",
        "imports os.path",
        "asks now()",
        "asks today()",
        "calls open()",
        "calls print()",
    ]


def test_optional_dependencies_stay_in_their_modules(sources: dict[Path, ast.Module]) -> None:
    """A third-party package is imported only in the module or package that is named after it."""
    strays = [
        f"{path}: imports {name}"
        for path, tree in sources.items()
        for name in sorted(_third_party(tree))
        if name not in re.split(r"[/_.]", str(path.with_suffix(""))) and name != ALSO.get(str(path))
    ]
    assert not strays


def _third_party(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=parts):
                names.update(part.name.split(".")[0] for part in parts)
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module.split(".")[0])
            case _:
                pass
    return names - set(sys.stdlib_module_names) - {"headway"}


def _impurities(tree: ast.Module) -> list[tuple[int, str]]:
    return sorted(_found(tree), key=lambda found: found[0])


def _found(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCKS and not node.args:
                yield node.lineno, f"asks {name}()"
                continue
            case ast.Call(func=ast.Name(id="open" | "print" | "input" as name)):
                yield node.lineno, f"calls {name}()"
                continue
            case _:
                continue
        for module in modules:
            if module.split(".")[0] in IMPURE:
                yield node.lineno, f"imports {module}"
