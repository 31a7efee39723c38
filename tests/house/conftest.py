"""What the house's tests look at: the project's folder and the files that belong to it."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_MADE = {"__pycache__", "dist", "build", "mutants", "uv.lock"}


def _tracked() -> list[Path]:
    """What git tracks; in a copy without git (an sdist), every file that is not made by a tool."""
    if (_ROOT / ".git").exists():
        # A clone that another user owns is as good as any: CI mounts such.
        command = ["git", "-c", f"safe.directory={_ROOT}", "ls-files", "-z"]
        listed = subprocess.run(command, cwd=_ROOT, capture_output=True, check=True, text=True).stdout
        return [path for name in listed.split("\0") if name and (path := _ROOT / name).is_file()]
    found = []
    for folder, folders, files in os.walk(_ROOT):
        folders[:] = [name for name in folders if name not in _MADE and not name.startswith(".")]
        found += [Path(folder, name) for name in files if name not in _MADE]
    return found


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return _ROOT


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """The project's files."""
    return _tracked()


@pytest.fixture(scope="session")
def sources() -> dict[Path, ast.Module]:
    """The package's modules, by their path relative to the package, and their syntax trees."""
    package = _ROOT / "src" / "headway"
    return {
        path.relative_to(package): ast.parse(path.read_text("utf-8"), str(path))
        for path in sorted(package.rglob("*.py"))
    }
