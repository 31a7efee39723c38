"""The HTTP API in OpenAPI 3.1. ``tests/service/test_openapi.py`` holds every path and example against real answers."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["openapi_document"]

_Schema = dict[str, Any]

_ASK: Final = {"policy": "one-time-codes", "attributes": {"phone": "+447700900123", "ip": "203.0.113.7"}}
_MILLISECONDS: Final = "whole milliseconds, rounded up"
_REGISTRY: Final = "https://iana.org/assignments/http-problem-types#"


def openapi_document() -> _Schema:
    """The document, ready for ``json.dumps``."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "headway",
            "version": "1",
            "description": "Rate-limiting decisions. Nothing here asks who calls: keep it on a network you trust.",
        },
        "paths": {
            "/v1/check": {"post": _decision("check", "Decide a request, and charge it if it is admitted")},
            "/v1/peek": {"post": _decision("peek", "What /v1/check would answer now; nothing is charged")},
            "/v1/release": {"post": _giving_back("release", "Give back what a decision holds", "Released")},
            "/v1/renew": {"post": _giving_back("renew", "Let a lease last its whole time from now", "Renewed")},
            "/v1/policies": _get("policies", "Which policies there are", {"200": _ok("Policies")}),
            "/v1/shadow": _get("shadow", "What shadow limits would have refused", {"200": _ok("Shadows")}),
            "/healthz": _get(
                "health", "The process runs; touches neither limits nor the store", {"200": _ok("Status")}
            ),
            "/readyz": _get(
                "ready",
                "Whether the store decides now",
                {"200": _ok("Status"), "503": _problem("The store cannot decide; detail says why.")},
            ),
            "/openapi.json": _get("openapi", "This document", {"200": _ok("Anything")}),
        },
        "components": {"schemas": _schemas(), "headers": _headers()},
    }


def _get(name: str, summary: str, responses: _Schema) -> _Schema:
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


def _ok(schema: str) -> _Schema:
    return {"description": "OK", "content": {"application/json": {"schema": _ref(schema)}}}


def _decision(name: str, summary: str) -> _Schema:
    cost = {"summary": "Several units", "value": {**_ASK, "cost": 2}}
    by_limit = {"summary": "Units by limit", "value": {**_ASK, "cost": {"per-ip": 2}}}
    batch = {"summary": "A batch, answered in order", "value": [_ASK, {"policy": "no-such-policy"}]}
    return {
        "operationId": name,
        "summary": summary,
        "description": "Any content type is read as JSON. An array is a batch of up to 1000 requests: it is answered "
        "with 200 and a status for each, and each is atomic by itself. A body has at most 1 MiB.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [_ref("Request"), {"type": "array", "maxItems": 1000, "items": {}}]},
                    "examples": {
                        "one": {"summary": "One request", "value": _ASK},
                        "cost": cost,
                        "by-limit": by_limit,
                        "batch": batch,
                    },
                }
            },
        },
        "responses": {
            "200": {
                "description": "Allowed, or the answers to a batch.",
                "headers": _header_refs("RateLimit", "RateLimit-Policy"),
                "content": {
                    "application/json": {
                        "schema": {"oneOf": [_ref("Decision"), {"type": "array", "items": _ref("BatchItem")}]}
                    }
                },
            },
            "400": _problem("The body is not JSON in UTF-8."),
            "403": _problem("Blocked: a limit's count is 0, so no wait helps.", "RateLimit-Policy"),
            "404": _problem("No policy of that name."),
            "408": _problem("The body was not complete in time."),
            "413": _problem("The body or the batch is too long."),
            "415": _problem("The body has a Content-Encoding."),
            "422": _problem(
                "Something is missing or of the wrong type (pointer says where), or the cost can never fit "
                "(type urn:headway:never-admissible).",
                "RateLimit",
                "RateLimit-Policy",
            ),
            "429": _problem("Refused for now.", "RateLimit", "RateLimit-Policy", "Retry-After"),
            "503": _problem(
                "The store could not decide and a limit says to deny then.", "RateLimit-Policy", "Retry-After"
            ),
        },
    }


def _giving_back(name: str, summary: str, schema: str) -> _Schema:
    answers = {"type": "array", "items": _ref(f"{schema}Item")}
    return {
        "operationId": name,
        "summary": summary,
        "description": "Of a lease that has expired or was given back before the answer says false. "
        "An array is a batch, as for /v1/check.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [_ref("Lease"), {"type": "array", "maxItems": 1000, "items": {}}]}
                }
            },
        },
        "responses": {
            "200": {
                "description": "Done, or the answers to a batch.",
                "content": {"application/json": {"schema": {"oneOf": [_ref(schema), answers]}}},
            },
            "400": _problem("The body is not JSON in UTF-8."),
            "404": _problem("The lease's policy is not served any more."),
            "408": _problem("The body was not complete in time."),
            "413": _problem("The body or the batch is too long."),
            "415": _problem("The body has a Content-Encoding."),
            "422": _problem("This is no lease of a policy that is served."),
            "503": _problem("The store does not answer; the lease expires by itself.", "Retry-After"),
        },
    }


def _problem(description: str, *headers: str) -> _Schema:
    return {
        "description": description,
        **({"headers": _header_refs(*headers)} if headers else {}),
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }


def _headers() -> _Schema:
    text = {"type": "string"}
    draft = "draft-ietf-httpapi-ratelimit-headers-11"
    return {
        "RateLimit": {"description": f"What is left, per limit ({draft}).", "schema": text},
        "RateLimit-Policy": {"description": f"The limits ({draft}).", "schema": text},
        "Retry-After": {
            "description": "Whole seconds, rounded up (RFC 9110).",
            "schema": {"type": "string", "pattern": "^[1-9][0-9]*$"},
        },
    }


def _schemas() -> _Schema:
    text: _Schema = {"type": "string"}
    texts: _Schema = {"type": "array", "items": text}
    count: _Schema = {"type": "integer", "minimum": 0}
    maybe: _Schema = {"type": ["integer", "null"], "minimum": 0}
    share: _Schema = {"minimum": 0, "maximum": 1}
    wait: _Schema = {"type": ["integer", "null"], "minimum": 0, "description": f"{_MILLISECONDS}; null: no wait helps"}
    milliseconds: _Schema = {**count, "description": _MILLISECONDS}
    return {
        "Anything": {"type": "object"},
        "Status": _object({"status": {"enum": ["ok", "ready"]}}),
        "Request": _object(
            {
                "policy": text,
                "attributes": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
                "cost": {"oneOf": [count, {"type": "object", "additionalProperties": count}], "default": 1},
            },
            optional=("attributes", "cost"),
        ),
        "Decision": _object(
            {
                "allowed": {"const": True},
                "limit": {"type": ["string", "null"], "description": "the limit with the fewest units left"},
                "remaining": {"type": ["integer", "null"], "minimum": 0, "description": "of that limit"},
                "retry_after_ms": {"const": 0},
                "degraded": {"const": True, "description": "decided without the store"},
                "shadowed": {**texts, "description": "shadow limits that would have refused, were they enforced"},
                "outcomes": {"type": "object", "additionalProperties": _ref("Outcome")},
                "lease": {"type": "string", "description": "gives back what is held (concurrency)"},
                "lease_ms": {**count, "description": "until the first units held are free by themselves, milliseconds"},
            },
            optional=("degraded", "shadowed", "lease", "lease_ms"),
        ),
        "Outcome": _object(
            {
                "outcome": {"enum": ["admitted", "refused", "never"]},
                "remaining": count,
                "retry_after_ms": wait,
                "replenish_after_ms": {**milliseconds, "description": f"until more is left; {_MILLISECONDS}"},
                "reset_after_ms": {**milliseconds, "description": f"until it is as if unused; {_MILLISECONDS}"},
                "delay_ms": {**milliseconds, "description": f"to wait before going on; {_MILLISECONDS}"},
            },
            optional=("delay_ms",),
        ),
        "Problem": _object(
            {
                "type": {
                    "type": "string",
                    "examples": [f"{_REGISTRY}quota-exceeded", "urn:headway:never-admissible", "urn:headway:not-json"],
                },
                "title": text,
                "status": {"type": "integer", "minimum": 400, "maximum": 599},
                "detail": {"type": "string", "description": "a sentence for a person"},
                "violated-policies": {**texts, "description": "the limits that refused"},
                "limit": {"type": ["string", "null"], "description": "the limit whose wait is longest"},
                "retry_after_ms": wait,
                "retry_at": {"type": ["string", "null"], "format": "date-time"},
                "never": {"const": True},
                "expected": {"type": "string", "description": "what would have been accepted"},
                "pointer": {"type": "string", "description": "where in the request (RFC 6901)"},
            },
            optional=(
                "violated-policies",
                "limit",
                "retry_after_ms",
                "retry_at",
                "never",
                "expected",
                "pointer",
            ),
        ),
        "BatchItem": {
            "oneOf": [
                _object(
                    {"status": {"const": 200}, "headers": _ref("Fields"), "decision": _ref("Decision")},
                    optional=("headers",),
                ),
                _object(
                    {
                        "status": {"type": "integer", "minimum": 400, "maximum": 599},
                        "headers": _ref("Fields"),
                        "problem": _ref("Problem"),
                    },
                    optional=("headers",),
                ),
            ]
        },
        "Lease": _object({"lease": {"type": "string", "description": "from the decision"}}),
        "Released": _object({"released": {"type": "boolean"}}),
        "Renewed": _object({"renewed": {"type": "boolean"}}),
        "ReleasedItem": _item("Released"),
        "RenewedItem": _item("Renewed"),
        "Fields": {"type": "object", "additionalProperties": text},
        "Policies": _object({"policies": {"type": "array", "items": _ref("Policy")}}),
        "Policy": _object(
            {
                "name": text,
                "attributes": {**texts, "description": "what its limits are keyed by and depend on"},
                "limits": {"type": "array", "items": _ref("Limit")},
                "exempt": {"type": "string", "description": "how many are never limited, and by what"},
            },
            optional=("exempt",),
        ),
        "Limit": _object(
            {
                "name": text,
                "quota": text,
                "by": texts,
                "algorithm": text,
                "count": count,
                "burst": count,
                "period_ms": milliseconds,
                "cost": {"type": ["integer", "null"], "description": "fixed, whatever the request says"},
                "on_store_failure": {"enum": ["deny", "allow", "local"]},
                "shadow": {"type": "boolean"},
                "depends": {
                    "type": "string",
                    "description": "on what of a request it depends; quota is then one of several",
                },
                "tier": {**text, "description": "the attribute that says the tier"},
                "tiers": {
                    "type": "object",
                    "additionalProperties": text,
                    "description": "a quota, block or unlimited for each tier",
                },
                "unknown_tier": {**text, "description": "what another tier meets: a tier, error, refuse or unlimited"},
                "missing_tier": {**text, "description": "what a request without the attribute meets"},
                "overrides": {**count, "description": "how many keys have a quota of their own"},
                "when": {**text, "description": "the conditions under which it applies"},
                "bans": {**count, "description": "how many entries the ban list has"},
                "would_have_refused": {**count, "description": "only of a shadow limit; /v1/shadow says more"},
            },
            optional=(
                *("depends", "tier", "tiers", "unknown_tier", "missing_tier", "overrides", "when", "bans"),
                "would_have_refused",
            ),
        ),
        "Shadows": _object({"policies": {"type": "array", "items": _ref("Shadow")}}),
        "Shadow": _object(
            {
                "name": {**text, "description": "the policy"},
                "since": {"type": "string", "format": "date-time", "description": "when counting began"},
                "counts": {"type": "array", "items": _ref("ShadowCount")},
            }
        ),
        "ShadowCount": _object(
            {
                "limit": text,
                "tier": {"type": ["string", "null"], "description": "null: requests of all tiers"},
                "requests": {**count, "description": "how many the limit was asked for"},
                "would_refuse": {**count, "description": "how many of them it would have refused"},
                "newly_refused": {**count, "description": "how many of those the enforced limits let pass"},
                "callers": {**maybe, "description": "different keys; null for a limit without a key"},
                "callers_refused": {**maybe, "description": "different keys that would have been refused"},
                "exact": {"type": "boolean", "description": "callers are exact, else right within about 3 %"},
                "undecided": {**count, "description": "requests beside those, of which it could not be asked"},
                "share": {**share, "type": "number", "description": "would_refuse / requests"},
                "callers_share": {**share, "type": ["number", "null"], "description": "callers_refused / callers"},
            }
        ),
    }


def _object(properties: _Schema, *, optional: tuple[str, ...] = ()) -> _Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _item(schema: str) -> _Schema:
    """An element of a batch's answer: what was asked for, or why not."""
    status: _Schema = {"type": "integer", "minimum": 400, "maximum": 599}
    return {
        "oneOf": [
            _object({"status": {"const": 200}, "lease": _ref(schema)}),
            _object({"status": status, "headers": _ref("Fields"), "problem": _ref("Problem")}, optional=("headers",)),
        ]
    }


def _ref(schema: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{schema}"}


def _header_refs(*names: str) -> _Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
