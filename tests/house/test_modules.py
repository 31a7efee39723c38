"""What every module and every test owes its reader."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import headway
from headway import errors

LONG = 400
SAYS_WHY = ("one thing", "long because")


def test_every_module_says_what_it_is(sources: dict[Path, ast.Module]) -> None:
    """Every module begins with a docstring whose first line is a whole sentence, more than a name."""
    silent = [str(path) for path, tree in sources.items() if not (ast.get_docstring(tree) or "").split("\n")[0]]
    unfinished = [
        str(path)
        for path, tree in sources.items()
        if not (ast.get_docstring(tree) or ".").split("\n\n")[0].endswith((".", ":", "::"))
    ]
    nameplates = [str(path) for path, tree in sources.items() if " " not in (ast.get_docstring(tree) or "").strip()]
    assert not silent
    assert not unfinished
    assert not nameplates


def test_long_modules_say_why(root: Path, sources: dict[Path, ast.Module]) -> None:
    """A module of more than 400 lines says in its docstring why it is still one thing."""
    for path, tree in sources.items():
        lines = (root / "src/headway" / path).read_text("utf-8").count("\n")
        said = " ".join((ast.get_docstring(tree) or "").split())
        assert lines <= LONG or any(words in said for words in SAYS_WHY), f"{path} has {lines} lines"


def test_every_rule_switched_off_says_which_and_why(root: Path, sources: dict[Path, ast.Module]) -> None:
    """A ``noqa`` or ``type: ignore`` in the package has its code, and its reason behind it; a package without types is one."""
    bare = [
        f"{path}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate((root / "src/headway" / path).read_text("utf-8").splitlines(), 1)
        if "import-untyped" not in line
        for off in re.findall(r"#\s*(?:noqa|type: ignore)(.*)", line)[-1:]
        if not re.match(r"(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[a-z, -]+\])\s+(?:#|-)\s*\S", off)
    ]
    assert not bare


def test_every_test_states_its_promise(root: Path) -> None:
    """Every test function has a docstring of one sentence or a few, ending in a full stop."""
    silent = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                said = ast.get_docstring(node) or ""
                if not said.endswith((".", "…", ")", "”", '"')):
                    silent.append(f"{path.relative_to(root)}:{node.lineno}: {node.name}")
    assert not silent


def test_no_test_sleeps(root: Path) -> None:
    """No test sleeps: a manual clock is faster and never flaky; one that waits for another process polls and is bounded."""
    sleeping = []
    for path in sorted((root / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="time" | "asyncio"), attr="sleep"),
                    args=[ast.Constant(value=float() | int() as seconds)],
                ):
                    if seconds > 0.1:
                        sleeping.append(f"{path.relative_to(root)}:{node.lineno}: {seconds} s")
                case _:
                    pass
    assert not sleeping


def test_every_exception_lives_in_errors(sources: dict[Path, ast.Module]) -> None:
    """No module but errors.py defines an exception, and errors.py draws and exports every one it defines."""
    known = set(errors.__all__) | {name for name, kind in vars(builtins).items() if _is_exception(kind)}
    for path, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and path != Path("errors.py"):
                bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
                assert not bases & known, f"{path}:{node.lineno}: {node.name} belongs in errors.py"
    defined = {name for name, kind in vars(errors).items() if _is_exception(kind)}
    assert defined == set(errors.__all__)
    assert all(name in (errors.__doc__ or "") for name in defined)


def test_public_names_are_listed_in_order() -> None:
    """Every name in headway.__all__ exists, once, in alphabetical order."""
    assert headway.__all__ == sorted(set(headway.__all__))
    assert all(hasattr(headway, name) for name in headway.__all__)


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
