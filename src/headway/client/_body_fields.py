"""What the names of a body's fields mean: which hold codes, sentences, waits, resets, limits, and which say it failed.

Names are compared in a normal form (`plain_key`): lower case, letters and digits only, so that `retry_after`,
`retryAfter` and `Retry-After` are one.
"""

import re
from functools import lru_cache
from typing import Any

from headway.client._vocabulary import speaks_of_a_limit

_CODES_TEXT = """
    code error type status reason errorcode errortype errorname errno tag id sysid kind state subcode
    statuscode name title exception class category fault faultcode errorreason errorkey messagecode key __type
    retcode errcode substatus statusmessage errorclass identifier problem cause slug info
    """
CODES = frozenset(_CODES_TEXT.split())
_SENTENCES_TEXT = """
    message msg error errors errormessage errormsg detail details description errordescription errortext info information note
    reason title text result faultstring string errorsummary summary usermessage errordetail developermessage retmsg
    errorinfo warning explanation statusmessage exceptionmessage errmsg notice content moreinfo localizedmessage
    """
SENTENCES = frozenset(_SENTENCES_TEXT.split())
_NAMES_TEXT = """
    policyname quotalimit quotaid limitname limittype ratelimittype policy limitid quotaname bucket rule rulename
    ratelimitname violatedlimit throttletype limitkey scope
    """
NAMES = frozenset(_NAMES_TEXT.split())
_WAITS = re.compile(
    r"(?:(?:x?ratelimit)?(?:retryafter|retryin|retrydelay|retrywait|retrybackoff|tryagainin|tryagainafter|wait|waittime|waitfor|waitperiod"
    r"|backoff|cooldown|estimatedtime|estimatedwait|lockout|lockedfor|timeleft|timetowait|timeremaining|availablein|delay"
    r"|timeuntilreset|timetoreset|ttr|ttlremaining|nextrequestin|retryafterduration|throttletime|timeuntilretry|retryinterval)"
    r"|(?:(?:seconds?|secs?|time)(?:until|to|till|before|left|remaining)(?:reset|retry|wait|next\w*|unlock)?))"
    r"(?:in)?(ms|millis|milliseconds|s|secs?|seconds|m|mins?|minutes|h|hours)?"
)
_RESETS = re.compile(
    r"(?:x?(?:rate)?limit|quota|window|usage)?(?:resets?|renews?|refresh|replenish)(at|time|timestamp|date|on|in|after|utc|datetime|delay)?"
    r"(ms|millis|milliseconds|s|secs?|seconds|epoch)?"
)
_INSTANTS = re.compile(
    r"(?:retryat|retryafterdate|retryaftertime|nextretryat|availableat|nextavailable\w*|blockeduntil|banneduntil|lockeduntil|suspendeduntil"
    r"|throttleduntil|limiteduntil|until|nextallowed\w*|nextaccess\w*|nextrequestat|resumeat|unblock(?:ed)?at|banexpires\w*|expiresat|tryagainat)"
)
_LIMITS = re.compile(
    r"total|(?:rate|request|requests|quota|daily|max|maximum|total)?(?:limit|quota|allowed|max|maximum|requests)(?:value|max)?|maxrequests|capacity"
)
_LEFTS = re.compile(
    r"(?:requests?|calls?|quota|limit|ratelimit|tokens|credits)?(?:remaining|left|available)(?:requests|calls|quota)?"
)
_USEDS = re.compile(r"(?:current|used|usage|count|consumed|observed|requestcount)(?:value|count|usage|requests)?")
_WINDOWS = re.compile(
    r"(?:window|period|interval|timewindow|windowsize|ratelimitperiod)(?:in)?(ms|s|secs?|seconds|minutes|hours)?"
)
_UNITS = {"ms": 1e-3, "mi": 60.0, "s": 1.0, "se": 1.0, "m": 60.0, "h": 3600.0, "ho": 3600.0}
_PLAIN = re.compile(r"[^a-z0-9]+")
_ERROR_KEYS_TEXT = "error errors fault exception errorcode errormessage errorid errcode retcode errortext"
_ERROR_KEYS = frozenset(_ERROR_KEYS_TEXT.split())
_ERROR_CODES = re.compile("err(?:or)?code")
_ERROR_TEXTS_TEXT = "error errors fault exception"
ERROR_TEXTS = frozenset(_ERROR_TEXTS_TEXT.split())
_MESSAGES_TEXT = (
    "message msg detail description errormessage errormsg errordescription errmsg retmsg faultstring errordetail"
)
MESSAGES = frozenset(_MESSAGES_TEXT.split())
_NOTES_TEXT = "information info note message msg detail details description warning notice"
_NOTES = frozenset(_NOTES_TEXT.split())
_FAILED_VALUES = frozenset(["0", "error", "fail", "failed", "failure", "notok", "nok", "ko", "false"])


@lru_cache(maxsize=1024)
def plain_key(raw: str) -> str:
    """Return the normal form of a field's name: lower case, letters and digits only, without a namespace."""
    return _PLAIN.sub("", raw[:80].rpartition(":")[2].lower())


def _explained(fields: dict[Any, Any]) -> bool:
    """Whether an object's code comes with a sentence, or instead of data: a coupon's code comes with neither."""
    return not fields.get("data", True) or any(plain_key(str(raw)) in _NOTES for raw in list(fields)[:64])


@lru_cache(maxsize=1024)
def field_role(key: str) -> tuple[str | None, float]:
    """Return what a body field measures, if anything, and the seconds in its unit.

    Args:
        key: The field's name in its normal form.
    """
    if (found := _WAITS.fullmatch(key)) is not None:
        return "wait", _unit(found.group(1))
    if (found := _RESETS.fullmatch(key)) is not None:
        return "reset", _unit(found.group(2))
    if _INSTANTS.fullmatch(key):
        return "instant", 1.0
    if _LEFTS.fullmatch(key):
        return "remaining", 1.0
    if _LIMITS.fullmatch(key):
        return "quota" if key.startswith("quota") else "limit", 1.0
    if _USEDS.fullmatch(key):
        return "used", 1.0
    if (found := _WINDOWS.fullmatch(key)) is not None:
        return "window", _unit(found.group(1))
    return None, 1.0


def is_code(key: str, value: str) -> bool:
    """Whether a field's text is a code: no number, no link; and a bare `id` is one only without digits."""
    return not value.isdigit() and "://" not in value and not (key == "id" and any(c.isdigit() for c in value))


def declares_failure(fields: dict[Any, Any]) -> bool:
    """Whether a JSON object says that it is an error, or is nothing but a few sentences where an answer should be."""
    inner = fields.get("data")
    if isinstance(inner, dict) and any(
        _ERROR_CODES.fullmatch(plain_key(str(raw))) and one for raw, one in inner.items()
    ):
        return True
    sentences = 0
    for raw, value in list(fields.items())[:64]:
        key = plain_key(str(raw))
        if key in _ERROR_KEYS and value not in (None, "", 0, "0", False, [], {}):
            return True
        if key in ("success", "ok") and value is False:
            return True
        if key in ("status", "result", "stat", "state") and str(value).lower() in _FAILED_VALUES:
            return True
        if key == "status" and isinstance(value, str) and value.isupper() and "_" in value:
            return True
        if key in ("code", "statuscode", "errorcode") and str(value) in ("429", "503", "403"):
            return True
        if key in ("cod", "code", "status") and isinstance(value, int) and value >= 400:
            return True
        if (
            key in ("code", "errorcode")
            and isinstance(value, str)
            and _explained(fields)
            and speaks_of_a_limit(value[:96])
        ):
            return True
        if key == "statusmessage" and str(fields.get("status", fields.get("status_code", 0))).lstrip("-0").isdigit():
            return True
        if key == "code" and str(value).lstrip("-").isdigit() and not fields.get("data", True):
            return True
        if key in _NOTES and isinstance(value, str) and " " in value:
            sentences += 1
    return 0 < len(fields) <= 3 and sentences == len(fields)


def _unit(word: str | None) -> float:
    """Return the seconds in one unit that ends a field's name."""
    if not word:
        return 1.0
    return 1e-3 if word.startswith(("ms", "milli")) else 60.0 if word.startswith("m") else _UNITS.get(word[:2], 1.0)
