"""Time zones by name: the same on every host, or one error that says what to install."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headway.core.zone import zone_of
from headway.errors import QuotaError


@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Kathmandu", "Etc/GMT+5", "EST5EDT", "GMT"])
def test_an_iana_name_is_its_zone(name: str) -> None:
    """With a city or without."""
    assert zone_of(name) is ZoneInfo(name)


@pytest.mark.parametrize("name", ["UTC", "utc", "Utc"])
def test_utc_is_one_zone_in_any_case(name: str) -> None:
    """Also where the system's files are told apart by case."""
    assert zone_of(name) is ZoneInfo("UTC")


@pytest.mark.parametrize(
    "name",
    ["Nowhere/Land", "localtime", "LOCAL", "posixrules", "posix/UTC", "Right/UTC", "factory", "Factory", "", "..", "Europe", "UTC\0"],
)  # fmt: skip
def test_what_is_no_zone_of_every_host_says_what_is_accepted(name: str) -> None:
    """The name, examples, and the extra that brings the data to a system without it; with the cause."""
    with pytest.raises(QuotaError) as caught:
        zone_of(name)
    assert caught.value.text == name
    assert str(caught.value) == (
        f"quota {name!r}: no time zone of that name is known here; expected an IANA name such as UTC, Europe/Berlin or "
        "Asia/Shanghai (a system without time-zone data needs `pip install 'headway[tz]'`)"
    )
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", ["localtime", "posix/UTC", "right/Europe/Berlin", "Factory"])
def test_a_host_s_own_setting_is_no_zone_even_where_there_is_a_file_of_it(name: str) -> None:
    """The cause says so, rather than that a file is missing."""
    with pytest.raises(QuotaError) as caught:
        zone_of(name)
    assert str(caught.value.__cause__).strip("\"'") == f"{name!r} names no zone but a setting of this host".strip("\"'")


@pytest.mark.parametrize(("name", "kind"), [(5, "an int"), (None, "a NoneType"), (b"UTC", "a bytes")])
def test_a_zone_is_a_name(name: Any, kind: str) -> None:
    """Anything else is shown with its type."""
    with pytest.raises(QuotaError) as caught:
        zone_of(name)
    assert caught.value.text == str(name)
    assert str(caught.value) == f"quota {str(name)!r}: a time zone is a name such as Europe/Berlin, not {kind}"
