"""``shown``: a store's URL as messages have it, without its password and its options."""

from __future__ import annotations

import re

__all__ = ["shown", "unwritable"]


def shown(url: str) -> str:
    """A URL that anybody may read, however wrong it is: nothing of what stands between a user's name and the last @."""
    before = re.split(r"[?&]\w*password=", url, maxsplit=1)[0]  # what is an option's value may have an @ in it
    url = url if re.search(r"://[^/?#@]*:(?!\d*$)[^/?#@]*$", before) else before
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    user, at, place = rest.rpartition("@")
    name = re.split("[:/?#]", user, maxsplit=1)[0]
    hidden = name if name == user else f"{name}:***"
    said = f"{scheme}{slashes}{hidden}{at}{re.split('[?#]', place, maxsplit=1)[0]}"
    return re.sub(r"(password\s*=\s*)('.*'|\S+)", r"\1***", said)  # libpq's other way to write it


def unwritable(url: str) -> str | None:
    """What no URL may have in it and this one has, in words; None: nothing."""
    found = re.search(r"[\x00-\x20\x7f]", url)
    if found:
        return f"has the character {found[0]!r} in it; write it as %{ord(found[0]):02X}"
    if "#" in url:
        return "has a fragment, which means nothing here; a # in a password is written as %23"
    ended = re.match("[^:/?]*://[^:/?@]*:[^/?@]*([/?])[^=&@]*@", url)
    return f"ends at the {ended[1]} of its password, which is written as %{ord(ended[1]):02X}" if ended else None
