"""Many logs, compressed or not, as one stream."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
import tracemalloc
from pathlib import Path

import pytest

from analysis.logs.made_logs import line
from headway.analysis.logs.block import Block
from headway.analysis.logs.read import read_logs

from .samples import AT, COMBINED, TEXTS, lines, problems, requests, written


def times(blocks: list[Block]) -> list[int]:
    """The times of all requests, in seconds after midnight."""
    return [time // 10**9 - 1_445_731_200 for block in blocks for time in block.columns["time"]]


def test_compression_is_told_by_the_content(tmp_path: Path) -> None:
    """Gzip (several members too), bzip2, xz and Zstandard (several frames too) are read under any name."""
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    log = COMBINED.encode() * 3
    packed = {
        "a": gzip.compress(log) + gzip.compress(log),
        "b": bz2.compress(log * 2),
        "c": lzma.compress(log * 2),
        "d": zstd.compress(log) + zstd.compress(log),
        "e": log * 2,
    }
    for name in written(tmp_path, packed):
        assert len(requests(list(read_logs([name], ("address",))))) == 6, name


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_damaged_file_gives_what_is_before_the_damage(tmp_path: Path, kind: str) -> None:
    """A cut or broken compressed log is read up to there, and one fault says why it ended."""
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    chance = random.Random(1)
    log = b"".join(line(second, f"198.51.100.{chance.randrange(256)}") for second in range(20_000))
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd.compress}[kind](log)
    broken = packed[: len(packed) * 2 // 3]
    (name,) = written(tmp_path, {f"log.{kind}": broken[:-9] + b"\xff" * 9})
    blocks = list(read_logs([name], ("address",)))
    assert [(number, problem[:23]) for number, problem in problems(blocks)][-1] == (0, "the rest cannot be read")
    assert len(requests(blocks)) < 20_000
    assert all(problem.isprintable() for _, problem in problems(blocks))


def test_several_logs_are_merged_by_time(tmp_path: Path) -> None:
    """Rotated logs in any order, and those of servers side by side, come out in the order of time, each request once."""
    chance = random.Random(2)
    seconds = sorted(chance.randrange(5000) for _ in range(9000))
    parts: dict[str, list[bytes]] = {"late": [], "one": [], "early": [], "two": [], "three": []}
    for second in seconds:
        where = "early" if second < 1000 else "late" if second >= 4000 else chance.choice(("one", "two", "three"))
        parts[where].append(line(second))
    names = written(tmp_path, {name: b"".join(part) for name, part in parts.items()})
    assert times(list(read_logs(names, ("address",)))) == seconds
    given = times(list(read_logs(names, ("address",), order="given")))
    assert given != seconds
    assert sorted(given) == seconds


def test_merged_logs_keep_their_formats_faults_and_lines(tmp_path: Path) -> None:
    """Logs of different formats merge; an empty one, and one of faults alone, are no trouble; faults name their log."""
    logs = {form: text.encode() for form, text in TEXTS.items()} | {"empty": b"", "bad": b"\n\n" + COMBINED.encode()}
    names = written(tmp_path, logs)
    blocks = list(read_logs(names))
    found = requests(blocks)
    assert len(found) == len(TEXTS) + 1
    assert {request["time"] for request in found} == {AT}
    assert {(Path(fault.source).name, fault.number) for block in blocks for fault in block.faults} == {
        ("bad", 1),
        ("bad", 2),
    }
    assert lines(blocks) == len(TEXTS) + 3


def test_one_log_keeps_its_own_order(tmp_path: Path) -> None:
    """Within a log nothing is sorted: whoever counts out-of-order lines can."""
    (name,) = written(tmp_path, {"log": line(5) + line(3) + line(4)})
    assert times(list(read_logs([name], ()))) == [5, 3, 4]


def test_the_standard_input_is_a_log_and_stays_open() -> None:
    """A dash stands for the standard input, compressed as it may be."""
    stream = io.BytesIO(gzip.compress(COMBINED.encode() * 2))
    assert len(requests(list(read_logs(["-"], ("address",), standard_input=stream)))) == 2
    assert not stream.closed


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    """The bytes read so far grow to the bytes of all logs."""
    names = written(tmp_path, {"a": line(1) * 9000, "b": gzip.compress(line(2) * 9000)})
    seen: list[tuple[int, int]] = []
    list(read_logs(names, (), progress=lambda done, size: seen.append((done, size))))
    whole = sum(Path(name).stat().st_size for name in names)
    assert seen == sorted(seen)
    assert seen[-1] == (whole, whole)


@pytest.mark.parametrize("form", ["combined", "nginx-json", "csv"])
def test_memory_does_not_grow_with_the_log(form: str) -> None:
    """Reading a log ten times as long takes no more memory at any time, bad lines or not."""
    header, _, _ = TEXTS["csv"].partition("\n")
    block = (TEXTS[form].splitlines()[-1] + "\n").encode() * 900 + b"junk\n" * 100
    peaks = []
    for times_as_long in (2, 20):
        stream = io.BufferedReader(_Repeated(f"{header}\n".encode() if form == "csv" else b"", block, times_as_long))
        tracemalloc.start()
        found = sum(map(len, read_logs(["-"], form=form, standard_input=stream)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found == 900 * times_as_long
    assert peaks[1] < 1.3 * peaks[0] + 500_000


class _Repeated(io.RawIOBase):
    """A stream that is never in memory as a whole."""

    def __init__(self, head: bytes, block: bytes, count: int) -> None:
        self._left = head
        self._block = block
        self._count = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # a buffer is all it is given
        if not self._left and self._count:
            self._left, self._count = self._block, self._count - 1
        part = self._left[: len(buffer)]
        buffer[: len(part)] = part
        self._left = self._left[len(part) :]
        return len(part)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """No file, a folder, an unknown field, order or column: each is an error that says what and what is accepted."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(read_logs([str(tmp_path / "nowhere")]))
    with pytest.raises(IsADirectoryError):
        list(read_logs([str(tmp_path)]))
    with pytest.raises(ValueError, match=r"field is 'ip'; expected any of time, address"):
        read_logs(["x"], ("ip",))
    with pytest.raises(ValueError, match=r"order is 'size'; expected time or given"):
        read_logs(["x"], order="size")
    with pytest.raises(ValueError, match=r"--columns names the field 'adress'; expected NAME=COLUMN with any of time"):
        read_logs(["x"], columns={"adress": "x"})


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    """Named columns of any type, times in any unit; a row without a time is a fault with its number; stdin works too."""
    duckdb = pytest.importorskip("duckdb")
    name = tmp_path / "log [1].parquet"
    duckdb.sql(
        "SELECT CASE WHEN i = 7 THEN NULL ELSE TIMESTAMP '2015-10-25 03:11:25.5' + INTERVAL (i) SECOND END AS ts, "
        "'192.0.2.' || (i % 9) AS \"Client_IP\", 200::SMALLINT AS status, 0.25::DOUBLE AS duration, "
        "'GET /a?b HTTP/1.1' AS request, {'a': 1} AS \"user\" FROM range(10000) t(i)"
    ).write_parquet(str(name))
    fields = ("address", "status", "duration", "method", "path", "user")
    blocks = list(read_logs([str(name)], fields))
    found = requests(blocks)
    assert len(blocks) > 1
    assert len(found) == 9999
    assert problems(blocks) == [(8, "no time")]
    assert found[7] == {
        "time": AT + 8_500_000_000,
        "address": "192.0.2.8",
        "status": 200,
        "duration": 250_000_000,
        "method": "GET",
        "path": "/a",
        "user": None,
    }
    with name.open("rb") as stream:
        assert requests(list(read_logs(["-"], fields, standard_input=stream))) == found
    with pytest.raises(ValueError, match=r"no Parquet file that can be read"):
        list(read_logs(written(tmp_path, {"x": b"PAR1" + bytes(50) + b"PAR1"})))
    with pytest.raises(ValueError, match=r"it does not begin with 'PAR1'"):
        list(read_logs(written(tmp_path, {"y": COMBINED.encode()}), form="parquet"))


@pytest.mark.parametrize(("module", "log"), [("backports", b"\x28\xb5\x2f\xfd...."), ("duckdb", b"PAR1....")])
def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, log: bytes) -> None:
    """Without the library the error is one line that says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "compression", None)
    for name in ("headway.analysis.logs.compression_backports", "headway.analysis.logs.duckdb_parquet"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ValueError, match=r"pip install 'headway\[analysis\]'"):
        list(read_logs(written(tmp_path, {"log": log})))
