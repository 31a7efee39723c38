"""The running service: what a program that is not Python gets over HTTP."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from serving import Service, serving

REGISTRY = "https://iana.org/assignments/http-problem-types#"
POLICIES = """
store = "memory://"

[[policies.codes.limits]]
name = "resend"
quota = "1 per 60s"
by = "phone"
[[policies.codes.limits]]
name = "per-ip"
quota = "20 per hour"
by = "ip"

[[policies.tokens.limits]]
name = "tokens"
quota = "100 per hour"
by = ["account", "model"]
[[policies.tokens.limits]]
name = "calls"
quota = "50 per hour"
by = ["account"]
cost = 1

[[policies.fast.limits]]
name = "fast"
quota = "10/s burst 1"
by = "key"

[[policies.banned.limits]]
name = "ban"
quota = "0/day"

[[policies.jobs.limits]]
name = "at-once"
quota = "2 at once for 60s"
by = ["user", "team"]
algorithm = "concurrency"
[[policies.jobs.limits]]
name = "often"
quota = "100/hour"
by = "user"

[policies.open]
limits = []
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service"), POLICIES) as started:
        yield started


def test_an_allowed_request_says_what_is_left(service: Service) -> None:
    """200 has the decision in its body and the limits in draft -11's two fields."""
    answer = service.check(phone="1", ip="192.0.2.1")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["ratelimit-policy"] == '"resend";q=1;w=60, "per-ip";q=20;w=3600'
    assert answer.headers["ratelimit"] == '"resend";r=0;t=60, "per-ip";r=19;t=180'
    assert "retry-after" not in answer.headers
    admitted = {"outcome": "admitted", "retry_after_ms": 0}
    assert answer.json() == {
        "allowed": True,
        "limit": "resend",
        "remaining": 0,
        "retry_after_ms": 0,
        "outcomes": {
            "resend": {**admitted, "remaining": 0, "replenish_after_ms": 60_000, "reset_after_ms": 60_000},
            "per-ip": {**admitted, "remaining": 19, "replenish_after_ms": 180_000, "reset_after_ms": 180_000},
        },
    }


def test_a_refused_request_says_which_limit_and_when_to_come_back(service: Service) -> None:
    """429 has Retry-After, no-store and a problem document that agree with one another."""
    service.check(phone="2", ip="192.0.2.2")
    answer = service.check(phone="2", ip="192.0.2.2")
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["ratelimit"].startswith('"resend";r=0;t=')
    document = answer.json()
    assert document["type"] == f"{REGISTRY}quota-exceeded"
    assert (document["title"], document["status"]) == ("Quota Exceeded", 429)
    assert document["violated-policies"] == ["resend"]
    assert document["limit"] == "resend"
    assert 0 < document["retry_after_ms"] <= 60_000
    assert int(answer.headers["retry-after"]) == math.ceil(document["retry_after_ms"] / 1000)
    assert datetime.fromisoformat(document["retry_at"]).tzinfo is not None
    assert document["detail"].startswith("Too many requests for this phone. Try again in ")


def test_who_waits_as_told_is_admitted(service: Service) -> None:
    """A wait below a second is a Retry-After of 1, and the exact wait in ms is enough."""
    answers = (service.check("fast", key="a") for _ in range(50))  # two within 100 ms, even on a busy machine
    answer = next(answer for answer in answers if answer.status_code == 429)
    assert answer.headers["retry-after"] == "1"
    time.sleep(answer.json()["retry_after_ms"] / 1000)
    assert service.check("fast", key="a").status_code == 200


def test_a_refusal_charges_nothing(service: Service) -> None:
    """All or nothing: the address's limit is not charged for what the phone's limit refused."""
    for _ in range(5):
        last = service.check(phone="3", ip="192.0.2.3")
    assert last.status_code == 429
    assert '"per-ip";r=19' in last.headers["ratelimit"]


def test_what_can_never_pass_is_told_apart(service: Service) -> None:
    """A cost above the burst is 422 and a ban 403, both without Retry-After, however large the cost is."""
    for cost in (101, 10**30):
        never = service.check("tokens", cost, account="never", model="m")
        assert (never.status_code, never.json()["type"]) == (422, "urn:headway:never-admissible")
        assert never.json()["never"] is True
        assert never.json()["retry_after_ms"] is None
        assert "retry-after" not in never.headers
    blocked = service.check("banned")
    assert (blocked.status_code, blocked.json()["type"]) == (403, "urn:headway:blocked")
    assert "retry-after" not in blocked.headers


def test_a_cost_may_be_one_number_or_one_by_limit(service: Service) -> None:
    """A number goes to every limit without a fixed cost; 0 only reports."""
    asked = {"account": "costs", "model": "m"}
    assert service.check("tokens", 40, **asked).json()["outcomes"]["tokens"]["remaining"] == 60
    by_limit = service.check("tokens", {"tokens": 50}, **asked).json()["outcomes"]
    assert (by_limit["tokens"]["remaining"], by_limit["calls"]["remaining"]) == (10, 48)
    assert service.check("tokens", {}, **asked).json()["outcomes"]["tokens"]["remaining"] == 9
    assert service.check("tokens", 0, **asked).json()["outcomes"]["tokens"]["remaining"] == 9


def test_a_number_and_its_text_are_one_key(service: Service) -> None:
    """42 and "42" are the same phone; other types are no keys at all."""
    assert service.check(phone=42, ip="192.0.2.4").status_code == 200
    assert service.check(phone="42", ip="192.0.2.5").status_code == 429


@pytest.mark.parametrize(
    "key",
    [
        "user's-key",
        "x'); DROP TABLE hits; --",
        'a"b',
        "a;b",
        "a%b",
        "a\\b",
        "{a}",
        "a:b",
        "a\nb",
        "a\0b",
        "",
        "é\ud800",
    ],
)
def test_no_key_touches_another(service: Service, key: str) -> None:
    """Whatever a value holds, it is its own counter: first admitted, then refused."""
    body = json.dumps({"policy": "codes", "attributes": {"phone": f"~{key}", "ip": key}})
    assert [service.client.post("/v1/check", content=body).status_code for _ in range(2)] == [200, 429]


def test_a_policy_without_limits_admits(service: Service) -> None:
    """Nothing is limited, nothing is advertised, and unknown attributes do no harm."""
    answer = service.check("open", anything="x")
    assert (answer.status_code, answer.json()) == (
        200,
        {"allowed": True, "limit": None, "remaining": None, "retry_after_ms": 0, "outcomes": {}},
    )
    assert "ratelimit" not in answer.headers


def test_a_peek_answers_the_same_and_charges_nothing(service: Service) -> None:
    """/v1/peek has the status, fields and body that /v1/check would have."""
    asked = {"phone": "peek", "ip": "192.0.2.6"}
    peeks = [service.peek(**asked) for _ in range(3)]
    checked = service.check(**asked)
    assert [peek.status_code for peek in peeks] == [200] * 3
    assert peeks[0].json() == checked.json()
    assert peeks[0].headers["ratelimit"] == checked.headers["ratelimit"]
    refused = service.peek(**asked)
    assert (refused.status_code, refused.json()["limit"]) == (429, "resend")


def test_a_batch_is_answered_in_order(service: Service) -> None:
    """One answer an element, each atomic by itself: what one element charges, the next one sees."""
    ask = {"policy": "codes", "attributes": {"phone": "batch", "ip": "192.0.2.7"}}
    other = {"policy": "codes", "attributes": {"phone": "batch-2", "ip": "192.0.2.7"}}
    answer = service.client.post("/v1/check", json=[ask, ask, {"policy": "nope"}, other, 5])
    assert answer.status_code == 200
    items = answer.json()
    assert [item["status"] for item in items] == [200, 429, 404, 200, 422]
    assert items[0]["decision"]["allowed"] is True
    assert items[0]["headers"]["RateLimit"] == '"resend";r=0;t=60, "per-ip";r=19;t=180'
    assert items[1]["problem"]["limit"] == "resend"
    assert int(items[1]["headers"]["Retry-After"]) == 60
    assert items[2]["problem"]["pointer"] == "/2/policy"
    assert items[3]["decision"]["outcomes"]["per-ip"]["remaining"] == 18
    assert items[4]["problem"]["pointer"] == "/4"
    assert service.client.post("/v1/check", json=[]).json() == []


def test_a_batch_has_at_most_1000_elements(service: Service) -> None:
    """One more is 413, and nothing of it is charged."""
    ask = {"policy": "tokens", "attributes": {"account": "many", "model": "m"}, "cost": 0}
    full = service.client.post("/v1/check", json=[ask] * 1000)
    assert [item["status"] for item in full.json()] == [200] * 1000
    more = service.client.post("/v1/check", json=[{**ask, "cost": 1}] * 1001)
    assert (more.status_code, more.json()["type"]) == (413, "urn:headway:too-large")
    assert service.peek("tokens", 0, account="many", model="m").json()["outcomes"]["tokens"]["remaining"] == 100


def test_a_body_has_at_most_1_mib(service: Service) -> None:
    """Longer is 413, whether the length was announced or not."""
    ask = json.dumps({"policy": "open", "attributes": {"x": "y"}}).encode()
    assert service.client.post("/v1/check", content=ask + b" " * (1024 * 1024 - len(ask))).status_code == 200
    long = ask + b" " * (1024 * 1024 - len(ask) + 1)
    for content in (long, iter([long[:100], long[100:]])):
        answer = service.client.post("/v1/check", content=content)
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/json"])
def test_the_content_type_does_not_matter(service: Service, content_type: str | None) -> None:
    """What is JSON is read as JSON, as ``curl -d`` sends it."""
    headers = {} if content_type is None else {"content-type": content_type}
    answer = service.client.post("/v1/check", content=b'\xef\xbb\xbf{"policy": "open"}', headers=headers)
    assert answer.status_code == 200


NOT_JSON = {
    "empty": (b"", "it is empty"),
    "text": (b"policy=codes", "line 1, column 1"),
    "cut off": (b'{"policy": "codes"', "column 19"),
    "single quotes": (b"{'policy': 'codes'}", "column 2"),
    "not UTF-8": (b'{"policy": "\xff"}', "not UTF-8"),
    "UTF-16": ('{"policy": "codes"}'.encode("utf-16"), "not UTF-8"),
    "NaN": (b'{"policy": "codes", "cost": NaN}', "NaN is no JSON number"),
    "infinity": (b'{"policy": "codes", "cost": -Infinity}', "-Infinity is no JSON number"),
    "a member twice": (b'{"policy": "codes", "cost": 1, "cost": 2}', "'cost' is given twice"),
    "nested deeply": (b"[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize(("body", "says"), NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_no_json_is_400(service: Service, body: bytes, says: str) -> None:
    """The document says what is wrong and what was expected."""
    answer = service.client.post("/v1/check", content=body)
    assert answer.status_code == 400
    document = answer.json()
    assert (document["type"], document["status"]) == ("urn:headway:not-json", 400)
    assert says in document["detail"]
    assert '"policy"' in document["expected"]


LONG = b"1" + b"0" * 5_000


@pytest.mark.parametrize("cost", [LONG, b'{"fast": %b}' % LONG], ids=["for all", "by limit"])
def test_a_cost_of_any_length_is_never_admissible(service: Service, cost: bytes) -> None:
    """Five thousand digits are a whole number above every burst: 422 never, not a body that cannot be read."""
    answer = service.client.post(
        "/v1/check", content=b'{"policy": "fast", "attributes": {"key": "l"}, "cost": %b}' % cost
    )
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:headway:never-admissible"
    assert "10^" in answer.json()["detail"]


def test_a_negative_cost_of_any_length_says_that_it_is_negative(service: Service) -> None:
    """Its first digits are shown, not all five thousand."""
    answer = service.client.post(
        "/v1/check", content=b'{"policy": "fast", "attributes": {"key": "l"}, "cost": -%b}' % LONG
    )
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("cost is negative: -1000")
    assert len(answer.json()["detail"]) < 120


def test_an_attribute_s_number_of_any_length_is_its_text(service: Service) -> None:
    """Two numbers of five thousand digits that differ in the last one are two keys; the text is the number's key too."""
    keys = (LONG, LONG[:-1] + b"1", b'"%b"' % LONG)
    bodies = [b'{"policy": "codes", "attributes": {"phone": %b, "ip": "long"}}' % key for key in keys]
    statuses = [service.client.post("/v1/check", content=body).status_code for body in bodies]
    assert statuses == [200, 200, 429]


@pytest.mark.parametrize("path", ["/v1/check", "/v1/peek", "/v1/release", "/v1/renew"])
@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, identity"])
def test_an_encoded_body_is_415(service: Service, path: str, coding: str) -> None:
    """It says which encoding it was and what is taken; a body that is said to be as it is, is read."""
    answer = service.client.post(path, content=b"x", headers={"Content-Encoding": coding})
    assert answer.status_code == 415
    assert answer.headers["accept-encoding"] == "identity"
    assert answer.json()["type"] == "urn:headway:encoded"
    assert coding in answer.json()["detail"]
    plain = service.client.post(path, content=b"x", headers={"Content-Encoding": "Identity"})
    assert plain.status_code == 400


def test_what_is_held_can_be_given_back_and_renewed(service: Service) -> None:
    """The lease of a decision frees its place once, renews it while it is held, and says false ever after."""

    def hold() -> httpx.Response:
        return service.check("jobs", user="ü", team="a")

    def give_back(path: str, lease: object) -> object:
        return service.client.post(f"/v1/{path}", json={"lease": lease}).json()

    first, second, refused = hold(), hold(), hold()
    assert (first.status_code, second.status_code, refused.status_code) == (200, 200, 429)
    assert first.json()["lease_ms"] == 60_000
    leases = [first.json()["lease"], second.json()["lease"]]
    assert leases[0] != leases[1]
    assert "lease" not in service.peek("jobs", user="b", team="b").json()
    assert "lease" not in refused.json()
    assert "lease" not in service.check("fast", key="no lease").json()
    assert give_back("renew", leases[0]) == {"renewed": True}
    assert give_back("release", leases[0]) == {"released": True}
    assert give_back("release", leases[0]) == {"released": False}
    assert give_back("renew", leases[0]) == {"renewed": False}
    assert hold().status_code == 200
    assert hold().status_code == 429
    batch = service.client.post("/v1/release", json=[{"lease": leases[1]}, {"lease": "x"}, {"leese": 1}, {}])
    assert batch.status_code == 200
    assert batch.json()[0] == {"status": 200, "lease": {"released": True}}
    assert [item["problem"]["pointer"] for item in batch.json()[1:]] == ["/1/lease", "/2/leese", "/3/lease"]
    assert hold().status_code == 200


def test_a_lease_s_units_of_other_limits_stay_charged(service: Service) -> None:
    """Giving back frees what is held; what was counted in a time is counted."""
    before = service.peek("jobs", user="c", team="c").json()["outcomes"]["often"]["remaining"]
    held = service.check("jobs", user="c", team="c").json()
    service.client.post("/v1/release", json={"lease": held["lease"]})
    after = service.peek("jobs", user="c", team="c").json()["outcomes"]
    assert after["often"]["remaining"] == before - 1
    assert after["at-once"]["remaining"] == 1


def sealed(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


PART = ["at-once", 60_000_000_000, ["u", "t"], 1, 5]
FORGED = {
    "a number": (5, 422),
    "no base64": ("?", 422),
    "base64 of nothing": ("", 422),
    "no JSON": ("AAAA", 422),
    "no parts": (sealed(["jobs", 1, []]), 422),
    "too little": (sealed(["jobs", 1]), 422),
    "no policy's name": (sealed([["jobs"], 1, [PART]]), 422),
    "time as text": (sealed(["jobs", "1", [PART]]), 422),
    "another policy": (sealed(["job", 1, [PART]]), 404),
    "another limit": (sealed(["jobs", 1, [["x", *PART[1:]]]]), 422),
    "a limit that holds nothing": (sealed(["jobs", 1, [["often", *PART[1:]]]]), 422),
    "a bool for a token": (sealed(["jobs", 1, [[*PART[:4], True]]]), 422),
    "a token too large": (sealed(["jobs", 1, [[*PART[:4], 2**63]]]), 422),
    "no units": (sealed(["jobs", 1, [[*PART[:3], 0, 5]]]), 422),
    "a key of numbers": (sealed(["jobs", 1, [[*PART[:2], [1, 2], 1, 5]]]), 422),
    "far too long": ("A" * 200_000, 422),
    "nested": (sealed(["jobs", 1, json.loads("[" * 300 + "]" * 300)]), 422),
}


@pytest.mark.parametrize(("lease", "status"), FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("path", ["/v1/release", "/v1/renew"])
def test_what_is_no_lease_is_said(service: Service, path: str, lease: object, status: int) -> None:
    """Nothing that a client makes up is a failure of the service; the pointer leads to it."""
    answer = service.client.post(path, json={"lease": lease})
    assert answer.status_code == status
    assert answer.json()["pointer"] == "/lease"
    assert answer.json()["expected"]


def test_a_lease_that_nobody_was_given_frees_nothing(service: Service) -> None:
    """With the right shape and another token the answer is false, and who holds the place keeps it."""
    service.check("jobs", user="u", team="t")
    service.check("jobs", user="u", team="t")
    assert service.client.post("/v1/release", json={"lease": sealed(["jobs", 1, [PART]])}).json() == {"released": False}
    assert service.check("jobs", user="u", team="t").status_code == 429


OK = {"phone": "p", "ip": "i"}
UNUSABLE = {
    "a number": (5, 422, "", "an object, not 5, an integer"),
    "null": (None, 422, "", "not null"),
    "no policy": ({}, 422, "/policy", "policy is missing"),
    "policy is a number": ({"policy": 1}, 422, "/policy", "policy is 1, an integer"),
    "unknown policy": ({"policy": "code", "attributes": OK}, 404, "/policy", "did you mean 'codes'?"),
    "unknown member": ({"policy": "codes", "Cost": 5}, 422, "/Cost", "did you mean 'cost'?"),
    "attributes is a list": ({"policy": "codes", "attributes": ["a"]}, 422, "/attributes", "attributes is an array"),
    "attributes is null": ({"policy": "codes", "attributes": None}, 422, "/attributes", "attributes is null"),
    "true": ({"policy": "codes", "attributes": {"phone": True}}, 422, "/attributes/phone", "true, a boolean"),
    "null value": ({"policy": "codes", "attributes": {"a/b~": None}}, 422, "/attributes/a~1b~0", "'a/b~' is null"),
    "float": ({"policy": "codes", "attributes": {**OK, "x": 1.0}}, 422, "/attributes/x", "1.0, a number"),
    "list value": ({"policy": "codes", "attributes": {**OK, "x": []}}, 422, "/attributes/x", "an array"),
    "object value": ({"policy": "codes", "attributes": {**OK, "x": {}}}, 422, "/attributes/x", "an object"),
    "missing attribute": ({"policy": "codes", "attributes": {"phone": "p"}}, 422, "/attributes/ip", "keyed by 'ip'"),
    "no attributes": ({"policy": "codes"}, 422, "/attributes/phone", "keyed by 'phone'"),
    "cost is true": ({"policy": "codes", "attributes": OK, "cost": True}, 422, "/cost", "true, a boolean"),
    "cost is null": ({"policy": "codes", "attributes": OK, "cost": None}, 422, "/cost", "cost is null"),
    "cost is 1.5": ({"policy": "codes", "attributes": OK, "cost": 1.5}, 422, "/cost", "1.5, a number"),
    "cost is text": ({"policy": "codes", "attributes": OK, "cost": "3"}, 422, "/cost", '"3", a string'),
    "cost is negative": ({"policy": "codes", "attributes": OK, "cost": -1}, 422, "/cost", "negative: -1"),
    "cost by limit": ({"policy": "codes", "attributes": OK, "cost": {"resend": -1}}, 422, "/cost/resend", "negative"),
    "cost, no limit": ({"policy": "codes", "attributes": OK, "cost": {"x": 1}}, 422, "/cost", "no limit is named 'x'"),
    "fixed cost": (
        {"policy": "tokens", "attributes": {"account": "a", "model": "m"}, "cost": {"calls": 2}}, 422, "/cost", "fixed cost",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "status", "pointer", "says"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_decided_says_what_was_expected(
    service: Service, body: object, status: int, pointer: str, says: str
) -> None:
    """404 for an unknown policy, 422 for the rest; the document points at the place."""
    for path in ("/v1/check", "/v1/peek"):
        answer = service.client.post(path, content=json.dumps(body))
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        document = answer.json()
        assert document["status"] == status
        assert document["pointer"] == pointer
        assert says in document["detail"]
        assert document["expected"]
        assert document["type"].startswith("urn:headway:")


def test_a_request_that_cannot_be_decided_charges_nothing(service: Service) -> None:
    """After any number of them the quota is whole."""
    for cost in (-1, 1.5, True, "3", None, {"resend": -1}):
        assert service.check("codes", cost, phone="faults", ip="192.0.2.8").status_code == 422
    outcomes = service.peek("codes", 0, phone="faults", ip="192.0.2.8").json()["outcomes"]
    assert {name: outcome["remaining"] for name, outcome in outcomes.items()} == {"resend": 1, "per-ip": 20}


def test_other_paths_and_methods_are_told_so(service: Service) -> None:
    """404 and 405 are problem documents too; 405 names what the path takes."""
    for path in ("/", "/v1/check/", "/v2/check", "/v1"):
        answer = service.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
        assert path in answer.json()["detail"]
    for method, path, allow in [
        ("GET", "/v1/check", "POST"),
        ("HEAD", "/v1/peek", "POST"),
        ("DELETE", "/v1/check", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("PUT", "/v1/policies", "GET, HEAD"),
    ]:
        answer = service.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)
        assert answer.headers["content-type"] == "application/problem+json"


def test_head_answers_like_get_without_a_body(service: Service) -> None:
    """Every path that takes GET takes HEAD, with the same fields."""
    for path in ("/healthz", "/readyz", "/v1/policies", "/openapi.json"):
        head, get = service.client.head(path), service.client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.content))


def test_health_never_costs_anything(service: Service) -> None:
    """Probes have no limit and use none up."""
    before = service.peek(phone="probe", ip="192.0.2.9").json()
    statuses = {service.client.get(path).status_code for path in ("/healthz", "/readyz") * 50}
    assert statuses == {200}
    assert service.peek(phone="probe", ip="192.0.2.9").json() == before


def test_policies_are_discoverable(service: Service) -> None:
    """A caller finds out which policies there are, what they ask for and what they admit."""
    policies = {policy["name"]: policy for policy in service.client.get("/v1/policies").json()["policies"]}
    assert list(policies) == ["codes", "tokens", "fast", "banned", "jobs", "open"]
    assert policies["tokens"]["attributes"] == ["account", "model"]
    assert policies["fast"]["limits"] == [
        {
            "name": "fast",
            "quota": "10/s burst 1",
            "by": ["key"],
            "algorithm": "gcra",
            "count": 10,
            "burst": 1,
            "period_ms": 1000,
            "cost": None,
            "on_store_failure": "deny",
            "shadow": False,
        }
    ]


def test_the_sentence_is_in_the_caller_s_language(service: Service) -> None:
    """Accept-Language chooses among the languages that are shipped."""
    ask = {"policy": "banned"}
    answer = service.client.post("/v1/check", json=ask, headers={"accept-language": "de-AT, en;q=0.5"})
    assert answer.headers["content-language"].startswith("de")
    assert answer.json()["detail"] != service.client.post("/v1/check", json=ask).json()["detail"]


@pytest.mark.parametrize("store", ["memory://", "sqlite:///limits.db"])
def test_parallel_requests_get_exactly_the_budget(tmp_path: Path, store: str) -> None:
    """50 requests at once on a key that has 20 left: 20 admitted, 30 refused."""
    text = f'store = "{store}"\n[[policies.p.limits]]\nname = "l"\nquota = "20 per day"\nby = "key"\n'
    with serving(tmp_path, text) as service, ThreadPoolExecutor(50) as pool:

        def hit(_: int) -> int:
            body = {"policy": "p", "attributes": {"key": "k"}}
            return httpx.post(f"{service.url}/v1/check", json=body, timeout=20, trust_env=False).status_code

        statuses = list(pool.map(hit, range(50)))
    assert (statuses.count(200), statuses.count(429)) == (20, 30)
