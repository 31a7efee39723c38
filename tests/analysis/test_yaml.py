"""YAML that a stranger wrote: whatever is in it, it is read or refused with its line."""

from __future__ import annotations

import pytest

from headway.analysis.yaml import read_yaml
from headway.errors import ConfigError


@pytest.mark.parametrize(
    "value",
    [
        "!!timestamp x",
        "!!bool x",
        "!!int ''",
        "!!float ''",
        "!!int x",
        "2024-02-30",
        "2001-12-14t21:59:43.10-99:30",
        "9" * 6000,
        "0x" + "f" * 100_000,
        "1:" * 5000 + "1",
        "!!python/object:os.system x",
    ],
)
def test_a_value_that_cannot_be_read_is_named_with_its_line(value: str) -> None:
    """A tag that does not fit, a date that is none, a number longer than is printed: one error, with the line."""
    with pytest.raises(ConfigError, match=r"^f\.yaml:2: ") as caught:
        read_yaml(f"a: 1\nb: {value}\n", "f.yaml")
    assert len(str(caught.value)) < 400
