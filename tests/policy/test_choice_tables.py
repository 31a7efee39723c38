"""What a policy file says of requests: tiers, overrides, conditions, lists, and the words of some algorithms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headway.core.limit import Algorithm, Limit
from headway.errors import ConfigError
from headway.policy.choice import Choice
from headway.policy.conditional import When
from headway.policy.lists import AllowList, BanList
from headway.policy.overrides import Overridden
from headway.policy.policy import Policy
from headway.policy.tiers import TieredLimit
from headway.policy.toml import Reading, read_policy_text

HEAD = '[[policies.p.limits]]\nname = "l"\n'


def read(text: str) -> Reading:
    return read_policy_text(text, file="limits.toml", folder=Path("/etc/headway"))


def policy(text: str) -> Policy:
    return read(text).policies().policies["p"]


def limit(keys: str) -> Limit | Choice:
    """The one limit of a file, its keys from line 3 on."""
    (found,) = policy(HEAD + keys).limits
    return found


def problems(text: str) -> list[ConfigError]:
    return list(read(text).problems)


BY = 'by = "account"\n'
TIERS: dict[str, Any] = {"free": "60/min", "pro": "600/min"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            'quota = { free = "60/min", pro = "600/min" }\ntier = "plan"\nunknown_tier = "free"\n' + BY,
            TieredLimit("l", TIERS, by="account", tier="plan", unknown="free"),
        ),
        (
            '[policies.p.limits.quota]\nfree = "block"\npro = "600/min"\nvip = "unlimited"\n',
            None,
        ),
        (
            'tier = "plan"\nunknown_tier = "refuse"\nmissing_tier = "unlimited"\nshadow = true\ncost = 3\n'
            '[policies.p.limits.quota]\n"7" = "block"\npro = "5/day in UTC"\nvip = "unlimited"\n',
            TieredLimit(
                "l", {"7": "block", "pro": "5/day in UTC", "vip": "unlimited"},
                tier="plan", unknown="refuse", missing="unlimited", shadow=True, cost=3,
            ),
        ),
        (
            'quota = "1/s"\noverrides = { acme = "9/s", "4 2" = "block", x = "unlimited" }\n' + BY,
            Overridden(Limit("l", "1/s", by="account"), {"acme": "9/s", "4 2": "block", "x": "unlimited"}),
        ),
        (
            'quota = "1/s"\nby = ["account", "region"]\n'
            'overrides = [{ account = "a", region = 1, quota = "9/s" }, { region = "eu", account = "b", quota = "block" }]\n',
            Overridden(Limit("l", "1/s", by=("account", "region")), {("a", "1"): "9/s", ("b", "eu"): "block"}),
        ),
        (
            'quota = "1/s"\noverrides = [{ account = 42, quota = "9/s" }]\n' + BY,
            Overridden(Limit("l", "1/s", by="account"), {"42": "9/s"}),
        ),
        (
            'quota = "1/s"\nwhen = { method = ["POST", "PUT"], size = { at_least = 10 } }\n',
            When({"method": ["POST", "PUT"], "size": {"at_least": 10}}, Limit("l", "1/s")),
        ),
        (
            'quota = "1/s"\n[[policies.p.limits.when]]\nip = "10.0.0.0/8"\n[[policies.p.limits.when]]\nx = { missing = true }\n',
            When([{"ip": "10.0.0.0/8"}, {"x": {"missing": True}}], Limit("l", "1/s")),
        ),
        (
            'quota = { free = "60/min", pro = "600/min" }\ntier = "plan"\nunknown_tier = "error"\nwhen = { a = 1 }\n'
            'overrides = { acme = "9/s" }\n' + BY,
            When({"a": 1}, Overridden(TieredLimit("l", TIERS, by="account", tier="plan"), {"acme": "9/s"})),
        ),
        ('block = true\nwhen = { country = "XX" }\n', When({"country": "XX"}, Limit("l", "0/s"))),
        ('quota = "block"\n', Limit("l", "0/s")),
        ('quota = "1/s"\nblock = false\n', Limit("l", "1/s")),
        ('capacity = 20\nrefill = "10 per 30 s"\n', Limit.token_bucket("l", capacity=20, refill="10 per 30 s")),
        (
            'algorithm = "token-bucket"\ncapacity = 20\nrefill = "10/s"\n' + BY,
            Limit.token_bucket("l", capacity=20, refill="10/s", by="account"),
        ),
        ('capacity = 20\nleak = "10/s"\n', Limit.leaky_bucket("l", capacity=20, leak="10/s")),
        (
            'algorithm = "leaky-bucket-queue"\ncapacity = 20\nleak = "10/s"\nundelayed = 5\n',
            Limit.leaky_bucket("l", capacity=20, leak="10/s", algorithm="leaky-bucket-queue", undelayed=5),
        ),
        ('interval = "30 s"\n' + BY, Limit.minimum_interval("l", "30 s", by="account")),
        ('quota = "1 per 30 s"\nalgorithm = "minimum-interval"\n', Limit.minimum_interval("l", "30 s")),
        ('quota = "3 at once for 60 s"\n', Limit("l", "3 at once for 60 s")),
        ('quota = "11/day in America/Los_Angeles"\n', Limit("l", "11/day in America/Los_Angeles")),
    ],
)  # fmt: skip
def test_a_file_says_what_code_would(keys: str, expected: Limit | Choice | None) -> None:
    """Each spelling gives what the same words give in a program, whichever of TOML's forms they are written in."""
    if expected is None:
        assert [problem.key for problem in problems(HEAD + keys)] == ["policies.p.limits[0].tier"]
    else:
        assert limit(keys) == expected


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_every_algorithm_can_be_named(algorithm: Algorithm) -> None:
    """What code can count by, a file can too, and so can tiers."""
    quota = {"calendar-window": "5/day in UTC", "concurrency": "5 at once"}.get(algorithm.value, "5/s")
    assert limit(f'quota = "{quota}"\nalgorithm = "{algorithm.value}"\n') == Limit("l", quota, algorithm=algorithm)
    tiers = (
        f'quota = {{ a = "{quota}", b = "block" }}\ntier = "t"\nunknown_tier = "a"\nalgorithm = "{algorithm.value}"\n'
    )
    assert limit(tiers) == TieredLimit("l", {"a": quota, "b": "block"}, tier="t", unknown="a", algorithm=algorithm)


def test_a_policy_has_lists() -> None:
    """A ban list is the first limit, called ``banned``; an allow list is what the limiter is given as ``exempt``."""
    found = policy(
        '[policies.p]\nexempt = [{ ip = "10.0.0.0/8" }, { account = "internal" }]\nban = [{ account = ["eve", "bot-*"] }]\n'
        '[[policies.p.limits]]\nname = "l"\nquota = "1/s"\nby = "ip"\nwhen = { method = "POST" }\n'
    )
    assert found.limits[0] == BanList("banned", {"account": ["eve", "bot-*"]})
    assert found.exempt == AllowList({"ip": "10.0.0.0/8"}, {"account": "internal"})
    assert found.attributes == ("account", "ip", "method")
    assert [one.name for one in found.plain_limits] == ["banned", "l"]
    only = policy('[policies.p]\nban = { ip = "203.0.113.0/24" }\nexempt = []\n')
    assert (only.limits, only.exempt) == ((BanList("banned", {"ip": "203.0.113.0/24"}),), None)
    assert policy("[policies.p]\nban = []\nlimits = []\n").limits == ()


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [("100", 100_000_000), ('"100 ms"', 100_000_000), ('"1 s"', 1_000_000_000), ('"1 hour"', 3_600_000_000_000)],
)
def test_a_store_s_deadline(deadline: str, expected: int) -> None:
    """Whole milliseconds, or text with a unit; none is the store's own."""
    text = f"deadline = {deadline}\n[policies.p]\nlimits = []\n"
    assert read(text).policies().deadline_ns == expected
    assert read("[policies.p]\nlimits = []\n").policies().deadline_ns is None


T = 'tier = "plan"\nunknown_tier = "error"\n'
Q = 'quota = { a = "1/s", b = "2/s" }\n'
PROBLEMS = {
    "tiers without tier": (Q, 1, "tier", "is missing beside a quota for each tier"),
    "tier without tiers": ('quota = "1/s"\ntier = "plan"', 4, "tier", "belongs to a quota for each tier"),
    "tier is a number": (Q + "tier = 3", 4, "tier", "3, an integer; expected the name of the attribute"),
    "tier is no name": (Q + 'unknown_tier = "error"\ntier = "my-plan"', 5, "tier", "did you mean 'my_plan'?"),
    "no tiers": ("quota = {}\n" + T, 3, "quota", "is empty"),
    "unknown_tier": (Q + 'tier = "plan"\nunknown_tier = "refused"', 5, "unknown_tier", "did you mean 'refuse'?"),
    "unknown_tier, a tier": (Q + 'tier = "plan"\nunknown_tier = "A"', 5, "unknown_tier", "one of a, b, error"),
    "missing_tier": (Q + T + 'missing_tier = "x"', 6, "missing_tier", "'x'; expected one of a, b, error, refuse"),
    "a tier's quota": ('quota = { a = "1/s", b = "2/x" }\n' + T, 3, "quota.b", "'2/x'"),
    "a tier's type": ("quota = { a = 5 }\n" + T, 3, "quota.a", '5, an integer; expected a string such as "5 per day"'),
    "a tier's case": ('quota = { a = "1/s", b = "Block" }\n' + T, 3, "quota.b", "did you mean 'block'?"),
    "a tier's name": ('quota = { "" = "1/s" }\n' + T, 3, 'quota.""', "has no name; expected a string such as 'free'"),
    "a tier at once": ('quota = { a = "3 at once", b = "2/s" }\n' + T, 3, "quota.b", "how many at once"),
    "a tier not at once": ('quota = { b = "2/s", a = "3 at once" }\n' + T, 3, "quota.a", "counted by concurrency"),
    "no values": ('quota = "1/s"\nwhen = { method = [] }', 4, "when.method", "is empty, so nothing would meet it"),
    "no values within": ('quota = "1/s"\nwhen = { method = { not = [] } }', 4, "when.method.not", "is empty"),
    "a date": ('quota = "1/s"\nwhen = { day = 2026-01-01 }', 4, "when.day", "2026-01-01, a date or time; expected a value"),
    "a time among values": (
        'quota = "1/s"\nwhen = { day = ["a", 10:00:00] }', 4, "when.day[1]", "a date or time; expected a string",
    ),
    "a date and time within": (
        'quota = "1/s"\nwhen = { day = { is = 2026-01-01T00:00:00Z } }', 4, "when.day.is", "a date or time",
    ),
    "a tier's algorithm": ('quota = { a = "1/s", b = "5/day in UTC" }\n' + T, 3, "quota.b", "calendar-window, not by gcra"),
    "tiers, misspelt tier": (Q + 'teir = "plan"\nunknown_tier = "a"', 4, "teir", "did you mean 'tier'?"),
    "quota unlimited": ('quota = "unlimited"', 3, "quota", "a limit that is unlimited is none"),
    "two quotas": ('quota = "1/s"\nblock = true', 4, "block", "stands beside quota"),
    "quota and interval": ('quota = "1/s"\ninterval = "1 s"', 4, "interval", "stands beside quota"),
    "refill alone": ('refill = "1/s"', 1, "capacity", "is missing beside refill"),
    "capacity alone": ("capacity = 3", 3, "capacity", 'refill = "10/s"'),
    "capacity beside quota": ('quota = "1/s"\ncapacity = 3', 4, "capacity", "belongs to refill"),
    "capacity 0": ('capacity = 0\nrefill = "1/s"', 3, "capacity", "1 to"),
    "capacity, text": ('capacity = "9"\nrefill = "1/s"', 3, "capacity", "'9', a string; expected a whole number"),
    "refill, burst": ('capacity = 9\nrefill = "1/s burst 3"', 4, "refill", "capacity says the burst"),
    "refill, zone": ('capacity = 9\nrefill = "1/day in UTC"', 4, "refill", "expected a pace"),
    "refill, text": ('capacity = 9\nrefill = "fast"', 4, "refill", "'fast'"),
    "refill, algorithm": ('capacity = 9\nrefill = "1/s"\nalgorithm = "sliding-log"', 5, "algorithm", 'expected "token-bucket"'),
    "leak, algorithm": ('capacity = 9\nleak = "1/s"\nalgorithm = "gcra"', 5, "algorithm", '"leaky-bucket-queue"'),
    "interval": ('interval = "soon"', 3, "interval", "'soon'"),
    "block, type": ('block = "yes"', 3, "block", "'yes', a string; expected true"),
    "overrides, no key": ('quota = "1/s"\noverrides = { a = "2/s" }', 4, "overrides", "give it by"),
    "overrides, type": ('quota = "1/s"\nby = "a"\noverrides = "x"', 5, "overrides", "expected a table of quotas by key"),
    "overrides, quota": ('quota = "1/s"\nby = "a"\noverrides = { x = "2/x" }', 5, "overrides.x", "'2/x'"),
    "overrides, algorithm": ('quota = "1/s"\nby = "a"\noverrides = { x = "2 at once" }', 5, "overrides.x", "concurrency"),
    "overrides, quoted key": ('quota = "1/s"\nby = "a"\noverrides = { "+4 4" = 3 }', 5, 'overrides."+4 4"', "3, an integer"),
    "overrides, two attributes": ('quota = "1/s"\nby = ["a", "b"]\noverrides = { x = "2/s" }', 5, "overrides", "expected an array: [{ a = "),
    "overrides, entry": ('quota = "1/s"\nby = "a"\noverrides = ["x"]', 5, "overrides[0]", "a table with a, quota"),
    "overrides, lacking": ('quota = "1/s"\nby = ["a", "b"]\noverrides = [{ a = "x", quota = "1/s" }]', 5, "overrides[0].b", "is missing"),
    "overrides, other key": ('quota = "1/s"\nby = "a"\noverrides = [{ a = "x", qouta = "1/s", quota = "1/s" }]', 5, "overrides[0].qouta", "'quota'?"),
    "overrides, value": ('quota = "1/s"\nby = "a"\noverrides = [{ a = 1.5, quota = "1/s" }]', 5, "overrides[0].a", "1.5, a float"),
    "overrides, twice": (
        'quota = "1/s"\nby = "a"\noverrides = [{ a = "1", quota = "1/s" },\n{ a = 1, quota = "1/s" }]', 6, "overrides[1].quota", "on line 5",
    ),
    "when, type": ('quota = "1/s"\nwhen = "POST"', 4, "when", "'POST', a string; expected a table of conditions"),
    "when, empty": ('quota = "1/s"\nwhen = []', 4, "when", "is empty"),
    "when, attribute": ('quota = "1/s"\nwhen = { client-ip = "x" }', 4, "when.client-ip", "a name like"),
    "when, range": ('quota = "1/s"\nwhen = { ip = ["::/0",\n"10.0.0.1/8"] }', 5, "when.ip[1]", "expected 10.0.0.0/8"),
    "when, test": ('quota = "1/s"\nwhen = { size = { at_lest = 3 } }', 4, "when.size.at_lest", "did you mean 'at_least'?"),
    "when, bound": ('quota = "1/s"\nwhen = { size = { above = "3" } }', 4, "when.size.above", "expected a number"),
    "when, several": ('quota = "1/s"\nwhen = [{ a = "1" }, "x"]', 4, "when[1]", "'x', a string"),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "line", "key", "says"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_said_with_its_place(keys: str, line: int, key: str, says: str) -> None:
    """One mistake is one problem, at its line and key, with what is accepted."""
    (found,) = problems(HEAD + keys)
    assert found.line == line
    assert found.key == f"policies.p.limits[0].{key}"
    assert says in found.problem
    assert "\n" not in str(found)


LISTS = {
    "exempt, type": ('exempt = "10.0.0.0/8"\nlimits = []', 2, "exempt", "expected conditions such as"),
    "exempt, everybody": ("exempt = [{}]\nlimits = []", 2, "exempt[0]", "every request would meet it"),
    "exempt, range": ('exempt = [{ ip = "10.0.0.0/40" }]\nlimits = []', 2, "exempt[0].ip", "no address range"),
    "ban, entry": ('ban = ["eve"]\nlimits = []', 2, "ban[0]", "'eve', a string; expected a table of conditions"),
    "ban, name": ('ban = [{ "a b" = 1 }]\nlimits = []', 2, 'ban[0]."a b"', "a name like"),
    "allow": ('allow = [{ ip = "::1" }]\nlimits = []', 2, "allow", "exempt = [{"),
    "deny": ('deny_list = [{ ip = "::1" }]\nlimits = []', 2, "deny_list", "ban = [{"),
    "a limit called so": (
        'ban = [{ a = 1 }]\nlimits = [{ name = "banned", quota = "1/s" }]',
        3,
        "limits[0].name",
        "rename one",
    ),
    "when of a limit": ("when = { a = 1 }\nlimits = []", 2, "when", "belongs to a limit"),
}


@pytest.mark.parametrize(("keys", "line", "key", "says"), LISTS.values(), ids=LISTS)
def test_a_list_that_cannot_be_right(keys: str, line: int, key: str, says: str) -> None:
    """The same for what a policy says."""
    (found,) = problems(f"[policies.p]\n{keys}\n")
    assert (found.line, found.key) == (line, f"policies.p.{key}")
    assert says in found.problem


@pytest.mark.parametrize("deadline", ["0", "-1", "true", "1.5", '"soon"', '"2 hours"', "[]", '""'])
def test_a_deadline_that_cannot_be_right(deadline: str) -> None:
    """It names the value and what is accepted."""
    (found,) = problems(f"deadline = {deadline}\n[policies.p]\nlimits = []\n")
    assert (found.line, found.key) == (1, "deadline")
    assert "expected" in found.problem


def test_an_unstated_unknown_tier_is_a_warning() -> None:
    """It is an error for the request, and the file's author is told so."""
    reading = read(HEAD + Q + 'tier = "plan"\n')
    (warning,) = reading.warnings
    assert str(warning).startswith("limits.toml:3: policies.p.limits[0].quota: ")
    assert "unknown_tier" in warning.problem
    assert reading.policies().policies["p"].limits == (TieredLimit("l", {"a": "1/s", "b": "2/s"}, tier="plan"),)
    assert not read(HEAD + Q + T).warnings


def test_all_problems_of_a_limit_are_reported() -> None:
    """What is wrong with its conditions, its tiers and its own keys, all in one run."""
    keys = 'quota = { a = "1/x" }\nby = 3\nwhen = { "a b" = 1 }\ncost = 0\nunknown_tier = ["x"]\n'
    assert {problem.line for problem in problems(HEAD + keys)} == {3, 4, 5, 6, 7}


@pytest.mark.parametrize("keys", ['exempt = [{ ip = "10.0.0.0/8" }]', "ban = []", "ban = {}", "exempt = []", ""])
def test_a_policy_without_limits_is_not_left_out_in_silence(keys: str) -> None:
    """Only a ban list may stand alone; else a policy that nobody serves would be a file without problems."""
    (problem,) = problems(f"{HEAD}quota = '1/s'\n[policies.q]\n{keys}\n")
    assert problem.key == "policies.q.limits"
    assert "is missing; expected [[policies.q.limits]]" in problem.problem


@pytest.mark.parametrize("when", ["{}", "[]"])
def test_no_conditions_are_one_problem(when: str) -> None:
    """What is empty is said once."""
    (problem,) = problems(f"{HEAD}quota = '1/s'\nwhen = {when}\n")
    assert (problem.key, problem.problem.partition(";")[0]) == ("policies.p.limits[0].when", "is empty")


def test_an_override_that_looks_like_a_pattern_is_a_warning() -> None:
    """Overrides are of single keys; a range of IPv6 is one, for it is what clients are counted by."""
    found = read(
        f"{HEAD}quota = '1/s'\nby = 'ip'\n[policies.p.limits.overrides]\n'a*' = '2/s'\n'10.0.0.0/8' = '2/s'\n'2001:db8::/64' = '2/s'\n"
    )
    assert [warning.line for warning in found.warnings] == [6, 7]
    assert "'a*' is one key as it stands, no pattern" in found.warnings[0].problem
    assert found.file is not None


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("deadline = '5 ms'", "stands at the top of the file"),
        ("provider = 'app:quota_of'", "ProvidedLimit"),
        ("ban = [{ ip = '10.0.0.0/8' }]", r"beside its limits: \[policies.NAME\]"),
        ("if = { method = 'POST' }", "when ="),
        ("tiers = { free = '1/s' }", "tier ="),
    ],
)
def test_a_key_that_stands_elsewhere_says_where(keys: str, says: str) -> None:
    """What other tools call it, or where it belongs."""
    (problem,) = problems(f"{HEAD}quota = '1/s'\n{keys}\n")
    assert re.search(says, problem.problem.rpartition(";")[2]), problem
