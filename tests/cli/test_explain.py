"""``headway explain`` as an operator runs it."""

from __future__ import annotations

import argparse
import json

import pytest

from headway.cli import explain


def headway(*words: str) -> int:
    """Run one command line in this process."""
    parser = argparse.ArgumentParser("headway")
    explain.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["explain", *words])
    status: int = args.run(args)
    return status


def test_json_is_one_object_with_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one JSON object and nothing else."""
    assert headway("100/s burst 20", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "emission_interval_s": 0.01,
        "tolerance_s": 0.19,
        "burst": 20,
        "recovery_s": 0.2,
        "most_in": {"1s": 120, "1m": 6020, "1h": 360020, "1d": 8640020},
    }
    assert err == ""


def test_people_get_words_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the same is said in words, with units."""
    assert headway("100/s burst 20") == 0
    assert capsys.readouterr().out == (
        "100/s burst 20\n"
        "20 may come at once; after that, one more every 10 ms. A spent burst is whole again after 200 ms without requests.\n"
        "\n"
        "emission interval   10 ms\n"
        "tolerance           190 ms\n"
        "burst               20\n"
        "recovery            200 ms\n"
        "most in any second  120\n"
        "most in any minute  6020\n"
        "most in any hour    360020\n"
        "most in any day     8640020\n"
    )


def test_a_quota_need_not_be_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a quota may come as several arguments."""
    assert headway("5", "per", "10", "minutes", "burst", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["emission_interval_s"] == 120


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        ("0/s", "blocks everything"),
        ("11/day in America/Los_Angeles", "recovery            when the next day begins in America/Los_Angeles"),
        ("3 at once", "most in any day     no bound"),
        ("3/s", "emission interval   about 333.333 ms"),
    ],
)
def test_every_kind_of_quota_is_explained(quota: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A count of 0, a calendar quota and an interval that no decimal holds are said as they are."""
    assert headway(quota) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "quota", ["banana", "", "5", "5 per", "5/fortnight", "1.5/s", "5/day in Mars/Olympus", "5/month"]
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_bad_quota_is_one_line_and_64(quota: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A quota that cannot be read is a usage error: its one line on the error output, nothing on the other."""
    assert headway(quota, *options) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("headway explain: quota ")
    assert err.count("\n") == 1
