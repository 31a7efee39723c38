"""The Retry-After family: `Retry-After` in every form that is legal or seen, and its millisecond siblings.

Several values, in one line or several, in one field or several: each is a hint, and the caller takes the longest.
"""

import re

from headway.client._headers import HeaderFields
from headway.client._moments import instants, offset

_MILLISECONDS = re.compile(r"(?:^|-)retry-?after-?(?:ms|millis|milliseconds)$|^x-amz-retry-after$")
_SECONDS = re.compile(r"(?:^|-)retry-?after(?:-?(?:s|sec|seconds))?$|(?:^|-)retry-(?:in|at)$")


def retry_after(fields: HeaderFields, now: float, warnings: list[str]) -> list[tuple[str, float]]:
    """Return every hint of the family: the field's lower-case name and seconds from now, 0 for the past.

    Args:
        fields: The response's header fields.
        now: The server's time, seconds since 1970.
        warnings: Gets one sentence for each malformed value.
    """
    hints: list[tuple[str, float]] = []
    for name, values in fields.lines.items():
        if "retry" not in name:
            continue
        if _MILLISECONDS.search(name):
            unit = 0.001
        elif _SECONDS.search(name):
            unit = 1.0
        else:
            continue
        for value in values:
            found = _hints(value, now, unit)
            if not found:
                warnings.append(f"{fields.spelling[name]}: {value[:60]!r} is no wait and was ignored.")
            hints.extend((name, max(seconds, 0.0)) for seconds in found)
    return hints


def _hints(value: str, now: float, unit: float) -> list[float]:
    """Read one line: a single value, dates with commas inside, or values joined by commas (RFC 9110 §5.3)."""
    single = offset(value, now, unit=unit)
    if single is not None:
        return [single]
    if "," not in value:
        return []
    found = [round(at - now, 6) for _, at in instants(value[:512])]
    rest = value[:512]
    for written, _ in instants(rest):
        rest = rest.replace(written, "", 1)
    parts = (offset(part, now, unit=unit) for part in rest.split(",") if part.strip())
    found.extend(seconds for seconds in parts if seconds is not None)
    return found
