"""What the repository holds, and what it must not."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:" + "|".join(["work", "tmp", "root", "home/[a-z]+"]) + r")/[\w.-]")
REGISTRY = re.compile(
    "|".join(
        [
            r"index[-_]url\s*[=:]\s*\S",
            r"PIP_(?:INDEX|FIND|EXTRA)",
            r'registry\s*=\s*"http',
            r'"resolved":\s*"http',
            r"https?://[^\s\"']*\.(?:whl|tar\.gz)",
            r"pypi\.org/" + "simple",
            r"files\.python" + r"hosted",
        ]
    )
)
RECORDED = {".jsonl", ".log"}
"""Recorded traffic: what strangers' servers called their own paths is none of ours."""


def _texts(tracked: list[Path]) -> list[tuple[Path, str]]:
    texts = []
    for path in tracked:
        try:
            texts.append((path, path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue  # a compiled catalogue, a picture
    return texts


def test_no_path_of_a_machine(root: Path, tracked: list[Path]) -> None:
    """No file holds a path of the machine it was written on."""
    here = [f"{place}/" for place in (root, Path.home()) if len(place.parts) > 2]
    found = [
        f"{path.relative_to(root)}: {line.strip()[:120]}"
        for path, text in _texts(tracked)
        if path.suffix not in RECORDED
        for line in text.splitlines()
        if MACHINE_PATH.search(line) or any(place in line for place in here)
    ]
    assert not found


def test_no_address_of_a_package_registry(root: Path, tracked: list[Path]) -> None:
    """No file holds a package registry's address, and no lock file is tracked."""
    found = [
        f"{path.relative_to(root)}: {line.strip()[:120]}"
        for path, text in _texts(tracked)
        if path != Path(__file__)
        for line in text.splitlines()
        if REGISTRY.search(line)
    ]
    assert not found
    assert root / "uv.lock" not in tracked
    assert "uv.lock" in (root / ".gitignore").read_text("utf-8").split()


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "work/main",
        'open("/' + 'tmp/x")',
        "HOME=/" + "root/.cache",
        "cp /home/" + "someone/x .",
    ],
)
def test_a_machine_path_would_be_seen(line: str) -> None:
    """The check above sees a path however it is written."""
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize("line", ["GET docs/work/x", "~/tmp/x", "https://site.example/home/", "../tmp/x"])
def test_an_honest_path_is_no_machine_path(line: str) -> None:
    """The check above lets relative paths and addresses be."""
    assert not MACHINE_PATH.search(line)


def test_ci_and_contributing_list_the_same_commands(root: Path) -> None:
    """CONTRIBUTING's "Before you push" and .ci/run name the same commands, in the same order."""
    section = (root / "CONTRIBUTING.md").read_text("utf-8").split("## Before you push")[1].split("\n## ")[0]
    listed = [line.removeprefix("$ ") for line in section.splitlines() if line.startswith("$ ")]
    script = (root / ".ci/run").read_text("utf-8")
    run = [line.removeprefix("run ") for line in script.splitlines() if line.startswith("run ")]
    assert listed == run
    assert listed[0] == "uv run pytest"
    assert {"uv run ruff check", "uv run ruff format --check", "uv run mypy", "uv run lint-imports"} < set(listed)


def test_ci_can_be_run(root: Path) -> None:
    """.ci/run is executable bash, stops at the first failure, and gives no command an input to wait for."""
    script = root / ".ci/run"
    text = script.read_text("utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert script.stat().st_mode & 0o111
    assert "\nset -eu\n" in text
    assert "</dev/null" in text
    assert text.index("pip install -q uv") < text.index("uv run pytest")


def test_readme_gives_the_two_commands(root: Path) -> None:
    """The README's two commands are there, word for word, each a line of its own."""
    lines = [line.removeprefix("$ ") for line in (root / "README.md").read_text("utf-8").splitlines()]
    for command in ("pip install -q uv && uv run headway serve", "pip install -q uv && uv run pytest"):
        assert command in lines
        assert shlex.split(command)


def test_extras_are_quoted_for_every_shell(root: Path) -> None:
    """``pip install headway[…]`` stands in quotes wherever it is said: zsh takes bare brackets for a pattern."""
    said = [path for folder in ("src", "docs", "changelog.d") for path in (root / folder).rglob("*")]
    for path in [root / "README.md", *said]:
        if path.suffix in (".py", ".md"):
            assert not re.search(r"pip install (?:[\w.-]+ )*[\w.]+\[", path.read_text("utf-8")), path


def test_changelog_fragments_say_something(root: Path) -> None:
    """There are fragments; each is a sentence or a few, and no heading or list."""
    fragments = [path for path in (root / "changelog.d").iterdir() if path.name != "README.md"]
    assert fragments
    for path in fragments:
        text = path.read_text("utf-8").strip()
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*\.md", path.name), path.name
        assert text, f"{path.name} is empty"
        assert not text.startswith(("#", "*", "-")), path.name
        assert text.endswith((".", "`", ")")), path.name


def test_decisions_are_numbered_without_gaps(root: Path) -> None:
    """Decisions are 0001, 0002, … and each says its context, its choice and its price."""
    pages = sorted((root / "docs/decisions").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04d}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text("utf-8")
        assert re.match(r"# \d+\. \S", text), page.name
        assert int(text[2:].split(".")[0]) == int(page.name[:4])
        for part in ("## Context", "## What we chose", "## What we gave up"):
            assert part in text, f"{page.name}: {part}"


def test_python_versions_agree(root: Path) -> None:
    """requires-python, the classifiers and the linter's target name the same oldest version, without gaps above it."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    oldest = re.fullmatch(r">=3\.(\d+)", project["project"]["requires-python"])
    assert oldest
    named = [
        re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", line) for line in project["project"]["classifiers"]
    ]
    minors = [int(found[1]) for found in named if found]
    assert minors == list(range(int(oldest[1]), int(oldest[1]) + len(minors)))
    assert project["tool"]["ruff"]["target-version"] == f"py3{oldest[1]}"
    assert project["project"]["dependencies"] == []


def test_the_licence_is_mit(root: Path) -> None:
    """The licence file, the metadata and the README say MIT."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == "MIT"
    assert (root / "LICENSE").read_text("utf-8").startswith("MIT License")
    assert "MIT" in (root / "README.md").read_text("utf-8")
