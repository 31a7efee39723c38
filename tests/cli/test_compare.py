"""``headway compare`` as an operator runs it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli import main

LINE = '{} - - [25/Oct/2015:04:{:02}:{:02} +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8"\n'


def headway(*words: str) -> int:
    """Run one command line in this process."""
    return main(["compare", *words])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two minutes: one client that asks every second, another that asks twice."""
    path = tmp_path / "access.log"
    lines = [LINE.format("203.0.113.7", second // 60, second % 60) for second in range(120)]
    path.write_text("".join([*lines, LINE.format("<b>\\x1b", 2, 0), LINE.format("<b>\\x1b", 2, 1)]))
    return path


@pytest.mark.parametrize("pattern", ["steady", "window-edge", "herd", "greedy", "drip-pause"])
def test_every_pattern_as_a_table_and_as_json(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each pattern is compared, for people and for programs, with the same figures."""
    assert headway("--pattern", pattern) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert headway("--pattern", pattern, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    for course in found["algorithms"]:
        assert re.search(rf"(?m)^{re.escape(course['name'])} +{course['admitted']} +{course['refused']} ", text)
        assert course["admitted"] + course["refused"] == found["requests"]
        assert sum(count for _, count in course["admitted_over_time"]) == course["admitted"]
        assert course["model"] == (course["algorithm"] == "leaky-bucket-drip")
    assert found["token_bucket_and_gcra"] == {"alike": found["requests"], "different": 0}
    assert "both decided alike" in text
    assert not found["partial"]


def test_the_window_edge_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an option the pattern is the one that shows most: twice the count at a window's edge."""
    assert headway() == 0
    assert re.search(r"time-bucketed counter +60 +0 +20\n", capsys.readouterr().out)


def test_the_same_command_says_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Output, page and picture are reproducible; another seed gives other arrivals."""
    said = []
    for seed in ("3", "3", "4"):
        html, plot = tmp_path / "a.html", tmp_path / "a.svg"
        assert headway("--pattern", "steady", "--seed", seed, "--html", str(html), "--plot", str(plot), "--json") == 0
        said.append((capsys.readouterr().out, html.read_bytes(), plot.read_bytes()))
    assert said[0] == said[1] != said[2]


def test_a_log_by_address(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log's requests are compared with a counter for each address; what is hostile in it is harmless."""
    assert headway("--log", str(log), "--limit", "30 per 60s", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["requests"], found["keys"], found["by"]) == (122, 2, "address")
    courses = {course["algorithm"]: course for course in found["algorithms"]}
    assert courses["fixed-window"]["admitted"] == 62
    assert courses["sliding-log"]["admitted"] == 62
    assert courses["gcra"]["refused"] == courses["token-bucket"]["refused"] > 0
    assert all(course["refused_others"] == 0 for course in found["algorithms"])


def test_a_log_with_one_counter(log: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With --by everyone all share one counter, and the page shows times of day."""
    page = tmp_path / "report.html"
    assert headway("--log", str(log), "--by", "everyone", "--limit", "60 per 60s", "--html", str(page)) == 0
    assert "122 requests came from 1 key in 2 min 1 s" in " ".join(capsys.readouterr().out.split())
    assert "2015-10-25 04:00:00 UTC" in page.read_text()


def test_only_some_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    """--algorithm, given once for each, picks and orders them."""
    assert headway("--algorithm", "gcra", "--algorithm", "anchored-window", "--algorithm", "gcra", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [course["algorithm"] for course in found["algorithms"]] == ["gcra", "anchored-window"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--limit", "many"), "many"),
        (("--limit", "0/s"), "expected a rate above 0"),
        (("--limit", "5/day in UTC"), "expected a rate above 0"),
        (("--algorithm", "magic"), "algorithm is 'magic'; expected any of fixed-window"),
        (("--by", "address"), "--by is 'address'; expected any of client, everyone"),
        (("--length", "0"), "length is 0; expected 1 to 1000"),
        (("--limit", "1000000/s"), "expected at most 1,000,000"),
        (("--format", "combined"), "--format belongs to a log"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that cannot be ends with 64 and one line that names it and what is accepted."""
    assert headway(*words) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("headway compare: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("--pattern", "chaos"), ("--plot", "x.pdf"), ("--pattern", "herd", "--log", "x")])
def test_what_argparse_refuses(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown pattern, a picture of another kind, and two sources are wrong usage."""
    with pytest.raises(SystemExit) as ended:
        headway(*words)
    assert ended.value.code == 64
    assert "expected" in capsys.readouterr().err or "--log" in words


@pytest.mark.parametrize(("option", "value"), [("--seed", "1"), ("--length", "3"), ("--by", "client")])
def test_a_patterns_options_are_not_a_logs(
    log: Path, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seed, length and client belong to patterns."""
    assert headway("--log", str(log), option, value) == 64
    assert option in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--format", "csv"), ("--columns", "time=ts"), ("--match", "GET /")])
def test_a_logs_options_are_not_a_patterns(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Format, columns and match belong to logs."""
    assert headway("--pattern", "herd", option, value) == 64
    assert f"{option} belongs to a log" in capsys.readouterr().err


def test_a_table_with_named_columns_and_some_requests_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are named and requests chosen as for the other readers of logs; what nothing matches is said."""
    table = tmp_path / "table.csv"
    table.write_text("when,who,verb,path\n1,a,GET,/x\n2,a,POST,/login?a=1\n3,b,POST,/login\n4,b,POST,/logout\n")
    words = ("--log", str(table), "--columns", "time=when,address=who,method=verb", "--json")
    assert headway(*words) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 4
    assert headway(*words, "--match", "POST /login") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["requests"], told["keys"]) == (2, 2)
    assert headway(*words, "--match", "POST /nothing") == 65
    assert "no request that 'POST /nothing' matches in 4 lines" in capsys.readouterr().err
    for option, value in (("--columns", "when"), ("--columns", "who=address"), ("--match", "POST")):
        assert headway("--log", str(table), option, value) == 64
        assert "expected" in capsys.readouterr().err


def test_a_log_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read ends with 66 and its name."""
    assert headway("--log", str(tmp_path / "none.log")) == 66
    assert "none.log: cannot be read" in capsys.readouterr().err


def test_a_log_in_no_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in which nothing parses is refused with what is wrong, and lines that do not parse are counted."""
    path = tmp_path / "poem.txt"
    path.write_text("a line\nanother\n")
    assert headway("--log", str(path)) == 65
    assert headway("--log", str(path), "--format", "haiku") == 64
    assert "poem.txt" in capsys.readouterr().err
    path.write_text("a line\n" + LINE.format("192.0.2.1", 1, 2))
    assert headway("--log", str(path), "--format", "combined", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["requests"] == 1
    assert "1 of 2 lines could not be read" in err


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Matplotlib a picture is refused before the work, in one line that names the extra; the table needs none."""
    monkeypatch.setattr("headway.cli.pictures.find_spec", lambda name: None)
    for option, name in (("--plot", "x.png"), ("--html", "x.html")):
        assert headway(option, str(tmp_path / name)) == 69
        assert (
            f"{name} needs an extra that is not installed: pip install 'headway[analysis]'" in capsys.readouterr().err
        )
    assert headway() == 0


def test_ctrl_c_leaves_a_partial_report(tmp_path: Path) -> None:
    """While a log is still being written to a pipe, Ctrl-C ends with 130 and a report of what came, which says so."""
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "headway", "compare", "--log", str(pipe), "--limit", "5/s", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w") as log:
        for second in range(20_000):
            log.write(LINE.format("192.0.2.1", second // 60 % 60, second % 60))
        log.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    found = json.loads(out)
    assert found["partial"] is True
    assert found["requests"] > 1_000
    assert all(course["admitted"] + course["refused"] == found["requests"] for course in found["algorithms"])


def test_in_a_terminal_there_are_plots(tmp_path: Path) -> None:
    """Where stdout is a terminal each algorithm has a plot; without colour if NO_COLOR says so."""
    pytest.importorskip("plotext")
    for no_colour in ("", "1"):
        leader, follower = pty.openpty()
        environment = os.environ | {
            "TERM": "xterm-256color",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": no_colour,
        }
        command = [sys.executable, "-m", "headway", "compare", "--algorithm", "gcra"]
        process = subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=environment)
        os.close(follower)
        said = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            said += part
        os.close(leader)
        assert process.wait(60) == 0
        text = said.decode()
        assert "GCRA: requests in 200 ms" in text
        assert text.count("┌") == 2
        assert ("\x1b[38" in text) != bool(no_colour)
