"""Lines of keys in TOML: every legal spelling, against tomllib for the keys and against a writer for the lines."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.locate import KeyPath, locate

SPELLINGS = {
    "tables": ('store = "x"\n\n[policies.codes]\n# limits\nlimits = []\n', ("policies", "codes", "limits"), 5),
    "array of tables": ('[[p.limits]]\nname = "a"\n[[p.limits]]\nname = "b"\n', ("p", "limits", 1, "name"), 4),
    "element": ("[[p.limits]]\n[[p.limits]]\n", ("p", "limits", 1), 2),
    "spaced header": ('[[ p . limits ]] # c\n\tname = "a"', ("p", "limits", 0, "name"), 2),
    "sub-table of an element": ("[[p]]\n[[p]]\n[p.q]\nk = 1\n", ("p", 1, "q", "k"), 4),
    "array below an element": ("[[p]]\n[[p.q]]\n[[p.q]]\n[[p]]\n[[p.q]]\nk = 1\n", ("p", 1, "q", 0, "k"), 6),
    "quoted header": ('["a.b".\'c"d\']\n"e\\u0066 ]=" = 1\n', ("a.b", 'c"d', "ef ]="), 2),
    "dotted": ('\na.b."c d" = 1\n', ("a", "b", "c d"), 2),
    "dotted, spaced": ("a . b = 1\na.c = 2", ("a", "c"), 2),
    "first place counts": ("a.b = 1\na.c = 2", ("a",), 1),
    "numeric key": ("3.14 = 1\n", ("3", "14"), 1),
    "empty key": ('\n"" = 1\n', ("",), 2),
    "inline table": ("x = 1\np = { limits = [ { name = 'a' }, { name = 'b' } ] }", ("p", "limits", 1, "name"), 2),
    "inline with dots": ("p = { a.b = 1, 'c' = {d = 2} }", ("p", "c", "d"), 1),
    "array over lines": ("by = [ # first\n  'a', # ] ,\n\n  'b',\n]\nnext = 1", ("by", 1), 4),
    "after an array over lines": ("by = [\n  'a', # ]\n  'b',\n]\nnext = 1", ("next",), 5),
    "tables over lines": ("limits = [\n {name = 'a'},\n {name = 'b', quota = '1/s'},\n]", ("limits", 1, "quota"), 3),
    "nested arrays": ("a = [[1, 2], [\n3, [4,\n5]]]", ("a", 1, 1, 1), 3),
    "after a multi-line string": ('a = """\n[b]\nc = 1 \\"""\n"""\nd = 1', ("d",), 5),
    "quotes at a string's end": ('a = """x"""""\nb = """"y\n"""\nc = 1', ("c",), 4),
    "literal multi-line": ("a = '''\nb = \\'''\nc = ''''''\nd = '''''e'''''\nf = 1", ("f",), 5),
    "escaped quote": ('a = "\\\\\\"#["\nb = 1', ("b",), 2),
    "dates": ("a = 1979-05-27 07:32:00Z # x\nb = [1979-05-27 07:32:00, 07:32:00.5]\nc = 1", ("c",), 3),
    "numbers": ("a = +1_000\nb = -1.5e+3\nc = 0xDEAD\nd = inf\ne = -nan\nf = true", ("f",), 6),
    "CRLF": ('a = 1\r\n\r\n[t]\r\nb = """\r\n"""\r\nc = 2\r\n', ("t", "c"), 6),
    "no newline at the end": ("\n\n\na=1", ("a",), 4),
    "comment at the end": ("a=1#b=2\n#c", ("a",), 1),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "line"), SPELLINGS.values(), ids=SPELLINGS)
def test_each_spelling_is_found_on_its_line(text: str, path: KeyPath, line: int) -> None:
    """A key is found on the line it stands on, however TOML lets people spell it."""
    assert locate(text)[path] == line


@pytest.mark.parametrize("text", [text for text, _, _ in SPELLINGS.values()], ids=SPELLINGS)
def test_keys_are_those_tomllib_reads(text: str) -> None:
    """Every key and element that tomllib reads has a line, and nothing else has one."""
    assert set(locate(text)) == set(_paths(tomllib.loads(text)))


_KEYS = st.one_of(st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True), st.text(max_size=4))
_VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_DOCUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=4)


@given(_DOCUMENTS, st.randoms(use_true_random=False))
def test_lines_are_those_a_writer_wrote(document: dict[str, object], random: object) -> None:
    """Whatever mix of quoted and bare keys, tables, inline tables, strings, comments and blank lines: exact."""
    writer = _Writer(random)
    writer.table((), document)
    text = "".join(writer.parts)
    assert tomllib.loads(text) == document
    assert locate(text) == writer.lines


def _paths(value: object, path: KeyPath = ()) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in items:
        found += [(*path, key), *_paths(inner, (*path, key))]
    return found


class _Writer:
    """Writes TOML in a random spelling and keeps the line of each key."""

    def __init__(self, random: object) -> None:
        self.random = random
        self.parts: list[str] = []
        self.lines: dict[KeyPath, int] = {}

    def put(self, text: str) -> None:
        self.parts.append(text)

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, "".join(self.parts).count("\n") + 1)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)  # type: ignore[attr-defined]

    def key(self, key: str) -> str:
        bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
        spellings = [_quoted(key)]
        if bare:
            spellings.append(key)
        if all(c >= " " and c not in "'\x7f" for c in key):
            spellings.append(f"'{key}'")
        return self.pick(*spellings)

    def table(self, path: KeyPath, table: dict[str, object]) -> None:
        later = []
        for key, value in table.items():
            inner = (*path, key)
            as_table = isinstance(value, dict) and value
            as_tables = isinstance(value, list) and value and all(isinstance(part, dict) for part in value)
            if (as_table or as_tables) and self.pick("header", "inline") == "header":
                later.append((inner, value))
                continue
            self.put(self.pick("", "\n", "# c = 1\n", " \t"))
            self.note(inner)
            self.put(self.key(key) + self.pick("=", " = "))
            self.value(inner, value)
            self.put(self.pick("\n", " # [x]\n", "\n\n"))
        for inner, value in later:
            for index, element in enumerate(value) if isinstance(value, list) else [(None, value)]:
                for depth in range(1, len(inner) + 1):
                    if not isinstance(inner[depth - 1], int):
                        self.note(inner[:depth])
                head = self.pick(".", " . ").join(self.key(str(p)) for p in inner if not isinstance(p, int))
                if index is None:
                    self.put(f"[{head}]\n")
                    self.table(inner, element)
                else:
                    self.note((*inner, index))
                    self.put(f"[[ {head}]]\n")
                    self.table((*inner, index), element)

    def value(self, path: KeyPath, value: object) -> None:
        if isinstance(value, dict):
            self.put("{ ")
            for number, (key, inner) in enumerate(value.items()):
                self.put(", " if number else "")
                self.note((*path, key))
                self.put(self.key(key) + " = ")
                self.value((*path, key), inner)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for index, inner in enumerate(value):
                self.put(self.pick("", "\n", " # ]\n "))
                self.note((*path, index))
                self.value((*path, index), inner)
                self.put(self.pick(",", "\n,", " , ") if index < len(value) - 1 else self.pick("", ",\n"))
            self.put("]")
        elif isinstance(value, str):
            self.put(self.pick(_quoted(value), _multi_line(value)))
        else:
            self.put(str(value).lower())


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isascii() and c.isalnum() else _escape(c) for c in text) + '"'


def _multi_line(text: str) -> str:
    return '"""\n' + "".join(c if c.isalnum() or c in "\n []{}#='" else _escape(c) for c in text) + '"""'


def _escape(character: str) -> str:
    return f"\\U{ord(character):08X}"
