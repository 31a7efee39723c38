"""``convert``: another limiter's configuration in, the text of a policy file and its notes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.analysis.convert.draft import Draft, Note
from headway.analysis.convert.express import convert_express, looks_like_express
from headway.analysis.convert.flask_limiter import convert_flask_limiter, looks_like_limits
from headway.analysis.convert.nginx import convert_nginx
from headway.analysis.convert.toml import policy_file
from headway.errors import ConfigError, ExtraMissing
from headway.policy.toml import read_policy_text

__all__ = ["SOURCES", "Converted", "convert"]

_NGINX: Final = re.compile(
    r"(?m)^\s*(?:limit_(?:req|conn)(?:_zone)?\s|(?:http|server|events)\s*\{|# configuration file )"
)
_ENVOY: Final = re.compile(r"(?m)^\s*[\"']?(?:domain|descriptors)[\"']?\s*:")


def _envoy(text: str, file: str) -> Draft:
    try:
        from headway.analysis.convert.envoy import convert_envoy
        from headway.analysis.yaml import read_yaml
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise ExtraMissing("reading YAML", "yaml") from error
    return convert_envoy(read_yaml(text, file), file)


SOURCES: Final[dict[str, Callable[[str, str], Draft]]] = {
    "envoy": _envoy,
    "nginx": convert_nginx,
    "limits": convert_flask_limiter,
    "express": convert_express,
}
"""What can be converted: envoyproxy/ratelimit's YAML, nginx's configuration, strings of ``limits`` and Flask-Limiter's
settings, and options of express-rate-limit."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What came of it.

    Attributes:
        text: the policy file; it is sound.
        source: of ``SOURCES``.
        notes: what is not exact.
    """

    text: str
    source: str
    notes: tuple[Note, ...]


def convert(
    text: str, file: str, source: str | None = None, *, policy: str | None = None, store: str | None = None
) -> Converted:
    """Convert one text.

    Args:
        text: the configuration.
        file: what messages call it.
        source: of ``SOURCES``; None tells it by the text.
        policy: the policy's name instead of the one that the source suggests.
        store: the store's URL instead of the source's, or of ``memory://``.

    Raises:
        ConfigError: with file and line: a text that cannot be read, or is none of these.
    """
    text = text.removeprefix("\ufeff")
    source = source or _detected(text, file)
    draft = SOURCES[source](text, file)
    if policy is not None:
        if len(draft.policies) > 1:
            names = ", ".join(one.name for one in draft.policies)
            raise ConfigError(
                f"makes {len(draft.policies)} policies ({names}), which cannot all be called {policy!r}", file=file
            )
        draft.policies[0].name = policy
    draft.store = store or draft.store
    written = policy_file(draft)
    reading = read_policy_text(written, file=file, folder=Path())
    if reading.problems:
        raise ConfigError(f"makes a policy file with a problem: {reading.problems[0].problem}", file=file)
    return Converted(written, source, tuple(draft.notes))


def _detected(text: str, file: str) -> str:
    if not text.strip():
        raise ConfigError("is empty; expected a limiter's configuration", file=file)
    if looks_like_express(text):
        return "express"
    if _ENVOY.search(text) and "descriptors" in text:
        return "envoy"
    if _NGINX.search(text):
        return "nginx"
    if looks_like_limits(text):
        return "limits"
    raise ConfigError(
        "is no configuration that is known here; expected envoyproxy/ratelimit's YAML, nginx's limit_req, strings of limits such "
        "as 10 per minute, settings RATELIMIT_*, or options such as windowMs; --from says which it is",
        file=file,
    )
