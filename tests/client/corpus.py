"""The recorded refusals that the tests of reading replay, each with the right reading of it.

`rejections.jsonl` and `header_edges.jsonl` are published formats of real services and edge cases of the fields;
`further.jsonl` adds kinds of evidence and responses that are no refusal. Ids, addresses and amounts are placeholders.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded response and its right reading; `expected["kind"]` is None for a response that is no refusal."""

    id: str
    received_at: datetime
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str
    expected: dict[str, Any]


def cases(*names: str) -> list[Case]:
    """Read the cases of the named files; of all without a name."""
    found = []
    for name in names or ("rejections", "header_edges", "further"):
        for line in (_FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            found.append(
                Case(
                    row["id"],
                    datetime.fromisoformat(row["received_at"]),
                    row["status"],
                    tuple((field, value) for field, value in row["headers"]),
                    row["body"],
                    row["expected"],
                )
            )
    return found
