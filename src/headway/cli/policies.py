"""What commands that take a policy file share: saying its problems and warnings, one line each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headway.cli import exit_codes
from headway.cli.safe import safe
from headway.errors import ExtraMissing

if TYPE_CHECKING:
    from headway.policy.policy import PolicyFile
    from headway.policy.toml import Reading

__all__ = ["code_of", "read_attributes", "report", "units"]


def code_of(reading: Reading) -> int:
    """The exit code of a file with problems: only missing extras are no fault of the file's."""
    missing = all(isinstance(problem, ExtraMissing) for problem in reading.problems)
    return exit_codes.UNAVAILABLE if missing else exit_codes.CONFIGURATION


def report(reading: Reading, command: str | None = None) -> PolicyFile | None:
    """Print every problem and warning on standard error; the policies, or None where there are problems.

    Args:
        reading: what came of the file.
        command: the command's name, said before warnings; None leaves them out.
    """
    for warning in reading.warnings if command else ():
        print(f"headway {command}: warning: {safe(str(warning))}", file=sys.stderr)
    for problem in reading.problems:
        print(safe(str(problem)), file=sys.stderr)
    return reading.file


def read_attributes(words: Iterable[str]) -> dict[str, str]:
    """Attributes from words such as ``phone=+447700900123``.

    Raises:
        ValueError: a word that is none, or a name that is given twice.
    """
    attributes: dict[str, str] = {}
    for given in words:
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise ValueError(f"{given!r} is no attribute; expected NAME=VALUE, such as phone=+447700900123")
        if name in attributes:
            raise ValueError(f"the attribute {name!r} is given twice; expected one value")
        attributes[name] = value
    return attributes


def units(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4000):
        raise argparse.ArgumentTypeError(f"{text!r} is no cost; expected a whole number from 0")
    return int(text)
