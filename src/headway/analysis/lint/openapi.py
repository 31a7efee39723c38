"""OpenAPI documents (3.0 and 3.1): whether refusals are declared, with their fields and their reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headway.analysis.figures import counted
from headway.analysis.lint.answer import Place
from headway.analysis.lint.audit import Graded, Report
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import BEST, Mark
from headway.analysis.yaml import Located
from headway.errors import ConfigError

__all__ = ["audit_openapi"]

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PROBLEM: Final = "application/problem+json"
_WORDS: Final = ("rate limit", "rate-limit", "ratelimit", "too many requests", "throttl", "quota exceeded")
_MOST_REFERENCES: Final = 20


class _Declared(NamedTuple):
    """What one operation says of its refusals: half points for what is there in part."""

    status: bool
    reason: float
    wait: float
    limits: bool


def audit_openapi(document: Located, file: str) -> Report:
    """Audit a document.

    Args:
        document: it, with its lines.
        file: what to call it.

    Raises:
        ConfigError: it is no OpenAPI document of version 3.
    """
    root = document.value
    version = root.get("openapi") if isinstance(root, dict) else None
    if not isinstance(version, str) or not version.startswith("3."):
        raise ConfigError(f"openapi is {version!r}; expected a document of version 3.0 or 3.1", file=file, line=1)
    findings: list[Finding] = []
    declared: list[_Declared] = []
    for operation in _operations(root, document, file):
        found, said = operation.check()
        findings += found
        declared.append(said)
    count = len(declared)
    looked_at = f"an OpenAPI document with {counted(count, 'operation')}"
    graded = (Graded(Place(file), "openapi", None, _marks(declared)),) if declared else ()
    return Report(file, looked_at, graded, tuple(findings))


def _marks(declared: list[_Declared]) -> tuple[Mark, ...]:
    """A property's points are its share of the operations, rounded down."""
    count = len(declared)

    def mark(name: str, values: list[float], what: str) -> Mark:
        full = sum(value == 1 for value in values)
        return Mark(name, int(sum(values) * BEST / count), f"{full} of {count:,} operations {what}")

    return (
        mark("status", [float(one.status) for one in declared], "declare 429"),
        mark("reason", [one.reason for one in declared], "declare a problem document for it"),
        mark("wait", [one.wait for one in declared], "declare Retry-After in whole seconds"),
        mark("limits", [float(one.limits) for one in declared], "declare fields about the limit"),
    )


def _operations(root: dict[str, Any], document: Located, file: str) -> Iterator[_Operation]:
    paths = root.get("paths")
    for path, item in paths.items() if isinstance(paths, dict) else ():
        shared = _resolved(root, item)
        for method in _METHODS:
            operation = shared.get(method) if isinstance(shared, dict) else None
            if isinstance(operation, dict):
                line = document.line("paths", path, method)
                yield _Operation(root, operation, Place(file, line, f"{method.upper()} {path}"))


class _Operation:
    """One operation of the document."""

    def __init__(self, root: dict[str, Any], operation: dict[str, Any], place: Place) -> None:
        self._root = root
        self._place = place
        responses = _resolved(root, operation.get("responses"))
        self._responses = (
            {str(status).upper(): _resolved(root, response) for status, response in responses.items()}
            if isinstance(responses, dict)
            else {}
        )

    def check(self) -> tuple[list[Finding], _Declared]:
        """What is wrong, and what is declared."""
        found = [Finding(rule, message, self._place) for rule, message in self._elsewhere()]
        status = next((one for one in ("429", "4XX") if one in self._responses), None)
        response = self._responses.get(status) if status else None
        if status != "429":
            range_ = f"; {status} covers it, and says nothing of it" if status else ""
            default = (
                "; default covers it, and says nothing of it" if not status and "DEFAULT" in self._responses else ""
            )
            found.append(Finding("openapi-429-undeclared", f"no 429 among its responses{range_}{default}", self._place))
        if not isinstance(response, dict):
            return found, _Declared(False, 0.0, 0.0, False)
        reason = self._reason(response)
        wait = self._wait(response)
        limits = any(name.startswith(("ratelimit", "x-ratelimit", "x-rate-limit")) for name in self._headers(response))
        if reason < 1:
            shown = "JSON of its own shape" if reason else "no JSON at all"
            found.append(Finding("openapi-problem-undeclared", f"its {status} declares {shown}", self._place))
        if not wait:
            found.append(
                Finding("openapi-retry-after-undeclared", f"its {status} declares no Retry-After", self._place)
            )
        elif wait < 1:
            kind = self._type(self._headers(response)["retry-after"])
            found.append(
                Finding(
                    "openapi-retry-after-type", f"its Retry-After is declared as {kind}; expected integer", self._place
                )
            )
        if not limits:
            found.append(
                Finding(
                    "openapi-limits-undeclared", f"its {status} declares no RateLimit or X-RateLimit field", self._place
                )
            )
        return found, _Declared(status == "429", reason, wait, limits)

    def _elsewhere(self) -> Iterator[tuple[str, str]]:
        for status, response in self._responses.items():
            if status in ("429", "4XX", "DEFAULT") or not isinstance(response, dict):
                continue
            said = str(response.get("description", "")).lower()
            if any(word in said for word in _WORDS):
                yield "openapi-limit-status", f"its {status} is described as {str(response.get('description'))[:60]!r}"

    def _headers(self, response: dict[str, Any]) -> dict[str, Any]:
        headers = response.get("headers")
        if not isinstance(headers, dict):
            return {}
        return {str(name).lower(): _resolved(self._root, header) for name, header in headers.items()}

    def _reason(self, response: dict[str, Any]) -> float:
        content = response.get("content")
        media = [str(name).partition(";")[0].strip().lower() for name in content] if isinstance(content, dict) else []
        return 1.0 if _PROBLEM in media else 0.5 if any("json" in name for name in media) else 0.0

    def _wait(self, response: dict[str, Any]) -> float:
        header = self._headers(response).get("retry-after")
        if header is None:
            return 0.0
        return 0.5 if self._type(header) == "number" else 1.0

    def _type(self, header: Any) -> str:
        schema = _resolved(self._root, header.get("schema")) if isinstance(header, dict) else None
        kind = schema.get("type") if isinstance(schema, dict) else None
        return "number" if kind == "number" or (isinstance(kind, list) and "number" in kind) else str(kind)


def _resolved(root: dict[str, Any], value: Any) -> Any:
    """What a reference into the same document leads to; None where it leads nowhere, or in a circle."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return value
        reference = value["$ref"]
        if not reference.startswith("#/"):
            return None
        value = root
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            value = value.get(part) if isinstance(value, dict) else None
    return None
