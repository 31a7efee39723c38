"""A rejection says itself to a person."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headway.client import Rejection, RejectionKind, read

NOW = datetime(2026, 8, 1, 12, 0, 30, tzinfo=UTC)


def said(kind: RejectionKind, seconds: float | None, window: float | None = None) -> str:
    """Say a rejection read at NOW."""
    at = None if seconds is None else NOW + timedelta(seconds=seconds)
    return Rejection(kind, seconds, at, window=window).sentence()


@pytest.mark.parametrize(
    ("seconds", "when"),
    [
        (0, "You can try again now."),
        (0.001, "Try again in 1 second."),
        (1, "Try again in 1 second."),
        (41.2, "Try again in 42 seconds."),
        (119.5, "Try again in 2 minutes."),
        (181, "Try again in 4 minutes."),
        (3600, "Try again in 60 minutes."),
        (3601, "Try again at 13:01 UTC on 1 August 2026."),
        (3631, "Try again at 13:02 UTC on 1 August 2026."),
        (86400, "Try again at 12:01 UTC on 2 August 2026."),
    ],
)
def test_a_wait_is_rounded_up_in_the_fitting_unit(seconds: float, when: str) -> None:
    """A wait is said in seconds, then minutes, then as a time with its zone, always rounded up and never as 0."""
    assert said(RejectionKind.RATE_LIMITED, seconds).endswith(when)


def test_the_period_is_said() -> None:
    """A known period names the limit."""
    assert said(RejectionKind.QUOTA_EXHAUSTED, 42, 86400) == (
        "This service's daily limit is used up. Try again in 42 seconds."
    )
    assert "monthly" in said(RejectionKind.QUOTA_EXHAUSTED, 42, 30 * 86400)
    assert "per-minute" in said(RejectionKind.RATE_LIMITED, 42, 60)


@pytest.mark.parametrize("kind", [RejectionKind.FORBIDDEN, RejectionKind.MISCONFIGURED])
def test_what_waiting_cannot_fix_says_so(kind: RejectionKind) -> None:
    """A refusal that time doesn't lift says that waiting will not help."""
    assert "Waiting will not help" in said(kind, None)
    assert not Rejection(kind).waiting_helps


@pytest.mark.parametrize("kind", list(RejectionKind))
def test_every_kind_has_a_sentence(kind: RejectionKind) -> None:
    """Every kind is said, with and without a hint, in whole sentences."""
    assert said(kind, None).endswith(".")
    assert said(kind, 5).endswith(".")


def test_the_zone_can_be_chosen() -> None:
    """An absolute time is said in the zone that is asked for, by its name."""
    rejection = Rejection(RejectionKind.RATE_LIMITED, 7200, NOW + timedelta(hours=2))
    assert "23:01 JST" in rejection.sentence(zone=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_an_impossible_wait_is_refused(seconds: float) -> None:
    """No rejection holds a wait that is negative, infinite or no number."""
    with pytest.raises(ValueError, match="retry_after"):
        Rejection(RejectionKind.RATE_LIMITED, seconds)


@pytest.mark.parametrize("kind", [429, 503, 403])
def test_x_should_retry_false_forbids_a_retry(kind: int) -> None:
    """The field that SDKs obey is read for every kind of refusal; only "false" forbids."""
    for value, forbids in (("false", True), ("FALSE", True), ("true", False), ("", False)):
        rejection = read(kind, {"x-should-retry": value}, "")
        assert rejection is not None
        assert rejection.no_retry is forbids


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Site Verification is not completed. Please wait for some time and try again", "ambiguous"),
        ("The key is still being verified", "ambiguous"),
        ("Key validation is pending", "ambiguous"),
        ("User is unauthorized to access the site. Please verify the site using the key and try again", "forbidden"),
        ("Invalid key", "misconfigured"),
        ("", "forbidden"),
    ],
)
def test_a_denial_that_may_pass_is_ambiguous(text: str, kind: str) -> None:
    """A 403 that speaks of something unfinished may pass by itself; one that only says no does not."""
    rejection = read(403, {"Content-Type": "application/json"}, {"message": text})
    assert rejection is not None
    assert rejection.kind == kind
