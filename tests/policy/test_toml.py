"""Policy files: what they say, and every problem with its file, line, key and the nearest accepted spelling."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from headway.core.limit import Limit
from headway.errors import ConfigError, UnknownName
from headway.policy.builtin import BUILTIN_TEXT, builtin_policies
from headway.policy.limit_table import LIMIT_KEYS
from headway.policy.policy import PolicyFile
from headway.policy.toml import Reading, read_policy_file, read_policy_text

FOLDER = Path("/etc/headway")
LIMIT = "[[policies.codes.limits]]\n"


def read(text: str) -> Reading:
    """Read a text as the file ``limits.toml``."""
    return read_policy_text(text, file="limits.toml", folder=FOLDER)


def policies(text: str) -> PolicyFile:
    """The policies of a text that must have no problem."""
    return read(text).policies()


def problem(text: str) -> ConfigError:
    """The one problem of a text."""
    (found,) = read(text).problems
    return found


def limit(keys: str) -> str:
    """A file with one limit, its keys from line 2 on."""
    return f"{LIMIT}{keys}\n"


def test_a_file_says_what_code_would() -> None:
    """Every key of a limit arrives as the argument of the same name."""
    file = policies(
        'store = "sqlite:///state/limits.db"\nnamespace = "shop"\n'
        + limit('name = "per-phone"\nquota = "5 per day"\nby = ["phone", "ip"]\ncost = 2\nsecret = ["phone"]')
        + limit(
            'name = "burst"\nquota = "3/s"\nalgorithm = "fixed-window"\ncount_refused = true\nby = "ip"\nsecret = true'
        )
        + limit('name = "all"\nquota = "11/day in America/Los_Angeles"\non_store_failure = "local"\nshadow = true')
        + limit(
            'name = "wait"\nquota = "3 per 30s"\nalgorithm = "growing-wait"\nlongest = "2 hours"\nforgiven_after = "3 days"'
        )
        + limit('name = "queue"\nquota = "5/s"\nalgorithm = "leaky-bucket-queue"\nundelayed = 3\ntext = "Slow down."')
    )
    assert (file.store, file.folder, file.source) == ("sqlite:///state/limits.db", FOLDER, "limits.toml")
    assert file.policies["codes"].limits == (
        Limit("per-phone", "5 per day", by=("phone", "ip"), cost=2, secret=["phone"]),
        Limit("burst", "3/s", by="ip", algorithm="fixed-window", count_refused=True, secret=True),
        Limit("all", "11/day in America/Los_Angeles", on_store_failure="local", shadow=True),
        Limit("wait", "3 per 30s", algorithm="growing-wait", longest="2 hours", forgiven_after="3 days"),
        Limit("queue", "5/s", algorithm="leaky-bucket-queue", undelayed=3, text="Slow down."),
    )


def test_every_argument_of_a_limit_is_a_key() -> None:
    """What code can say about a limit, a file can say too."""
    assert {name for name in inspect.signature(Limit).parameters if name != "rule"} <= LIMIT_KEYS.keys()


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        (" 10 / Minute ", "10/minute"),
        ("10/2minutes", "10 per 2 minutes"),
        ("100/s burst 20", "100/s burst 20"),
        ("0/day", "0/day"),
    ],
)
def test_quotas_are_read_as_everywhere(text: str, quota: str) -> None:
    """A quota's text means in a file what it means to ``Quota.parse``."""
    assert str(policies(limit(f'name = "a"\nquota = "{text}"')).policies["codes"].limits[0].quota) == quota


def test_policies_do_not_share_counters_by_accident() -> None:
    """Limits of one name in two policies count apart, whatever the names and the namespace are."""
    file = policies('namespace = "a#b"\n[policies."b/c"]\nlimits = []\n[policies.c]\nlimits = []\n')
    assert [policy.namespace for policy in file.policies.values()] == ["a#b#b/c", "a#b#c"]


def test_the_built_in_policies_have_no_problem() -> None:
    """The built-in text is a policy file like any other, with the four limits of one-time codes."""
    limits = builtin_policies(FOLDER).policy("one-time-codes").limits
    assert [(each.name, str(each.quota), each.by) for each in limits] == [
        ("resend", "1/minute", ("phone",)),
        ("per-phone", "5/day", ("phone",)),
        ("per-ip", "20/hour", ("ip",)),
        ("everyone", "1000/day", ()),
    ]
    assert policies(BUILTIN_TEXT).store == "sqlite:///limits.db"


def test_an_unknown_policy_names_the_known_ones() -> None:
    """Asking for a policy that is not there says which are; case counts."""
    for name in ("code", "CODES"):
        with pytest.raises(UnknownName, match=f"no policy is named '{name}'; known: codes"):
            policies(limit('name = "a"\nquota = "1/s"')).policy(name)


PROBLEMS = {
    "unknown key at the top": ('stor = "x"\n[policies.a]\nlimits=[]', 1, "stor", "did you mean 'store'?"),
    "case at the top": ('Store = "x"\n[policies.a]\nlimits=[]', 1, "Store", "did you mean 'store'?"),
    "limits without a policy": ('[[limits]]\nname = "a"', 1, "limits", "[[policies.NAME.limits]]"),
    "policy for policies": ("[[policy.codes.limits]]\n", 1, "policy", "did you mean 'policies'?"),
    "limit for limits": ("[[policies.codes.limit]]\n", 1, "policies.codes.limit", "did you mean 'limits'?"),
    "array of policies": ("[[policies.codes]]\n", 1, "policies.codes", "[[policies.codes.limits]]"),
    "one limit, single brackets": ('[policies.codes.limits]\nname = "a"', 1, "policies.codes.limits", "array of tables"),
    "a limit's key in a policy": ('[policies.a]\nquota = "1/s"', 2, "policies.a.quota", "belongs to a limit"),
    "a policy without limits": ("\n[policies.a]\n", 2, "policies.a.limits", "limits = []"),
    "no policy at all": ('store = "memory://"', None, "policies", "at least one"),
    "empty file": ("", None, "policies", "at least one"),
    "policies is text": ('policies = "codes"', 1, "policies", "tables of limits"),
    "store is a number": ("store = 3\n[policies.a]\nlimits=[]", 1, "store", "3, an integer"),
    "empty namespace": ('namespace = ""\n[policies.a]\nlimits=[]', 1, "namespace", "a string such as"),
    "a limit is text": ('[policies.a]\nlimits = [\n"1/s"]', 3, "policies.a.limits[0]", "a table with name and quota"),
    "camel case": (limit('name="a"\nquota="1/s"\nonStoreFailure="deny"'), 4, "onStoreFailure", "'on_store_failure'?"),
    "hyphens": (limit('name="a"\nquota="1/s"\ncount-refused=true'), 4, "count-refused", "'count_refused'?"),
    "misspelt": (limit('name="a"\nquota="1/s"\nalgoritm="gcra"'), 4, "algoritm", "'algorithm'?"),
    "shortened": (limit('name="a"\nquota="1/s"\nalgo="gcra"'), 4, "algo", "'algorithm'?"),
    "misspelt quota": (limit('name="a"\nqouta="1/s"'), 3, "qouta", "did you mean 'quota'?"),
    "no quota": (limit('name = "a"'), 1, "quota", "is missing"),
    "no name": (limit('quota = "1/s"'), 1, "name", "is missing"),
    "quota without a unit": (limit('name="a"\nquota="100 per 10"'), 3, "quota", "expected a unit of time"),
    "quota without a period": (limit('name="a"\nquota="100"'), 3, "quota", "'/' or 'per'"),
    "unknown unit": (limit('name="a"\nquota="5/fortnight"'), 3, "quota", "'fortnight'"),
    "zero period": (limit('name="a"\nquota="100/0s"'), 3, "quota", "the period is 0"),
    "negative": (limit('name="a"\nquota="-3/minute"'), 3, "quota", "'-3"),
    "trailing separator": (limit('name="a"\nquota="10/minute, "'), 3, "quota", "', '"),
    "two quotas": (limit('name="a"\nquota="10 per 90 seconds; 100/hour"'), 3, "quota", "write one limit for each"),
    "unknown zone": (limit('name="a"\nquota="5/day in Mars/Base"'), 3, "quota", "Mars/Base"),
    "quota is a number": (limit('name="a"\nquota=5'), 3, "quota", "5, an integer; expected a string"),
    "quota is an array": (limit('name="a"\nquota=["1/s"]'), 3, "quota", "an array; expected a string"),
    "upper case name": (limit('name="Per Phone"\nquota="1/s"'), 2, "name", "did you mean 'per-phone'?"),
    "camel case name": (limit('name="perPhone"\nquota="1/s"'), 2, "name", "did you mean 'per-phone'?"),
    "accents": (limit('name="pro Gerät"\nquota="1/s"'), 2, "name", "did you mean 'pro-gerat'?"),
    "digit first": (limit('name="5 a day"\nquota="1/s"'), 2, "name", "did you mean 'limit-5-a-day'?"),
    "quote in a name": (limit("name='a\"b'\nquota=\"1/s\""), 2, "name", "did you mean 'a-b'?"),
    "nothing usable": (limit('name="电话"\nquota="1/s"'), 2, "name", "cannot go into a header"),
    "empty name": (limit('name=""\nquota="1/s"'), 2, "name", "cannot go into a header"),
    "policy name": ("[policies.Codes]\nlimits=[]", 1, "policies.Codes", "did you mean 'codes'?"),
    "quoted policy name": ('[policies."one time"]\nlimits=[]', 1, 'policies."one time"', "'one-time'?"),
    "newline in a key": ('[policies."a\\nb"]\nlimits=[]', 1, 'policies."a\\nb"', "'a-b'?"),
    "algorithm": (limit('name="a"\nquota="1/s"\nalgorithm="fixed_window"'), 4, "algorithm", "'fixed-window'?"),
    "algorithm, no string": (limit('name="a"\nquota="1/s"\nalgorithm=1'), 4, "algorithm", '"sliding-log"'),
    "algorithm that does not fit": (limit('name="a"\nquota="1/s burst 2"\nalgorithm="sliding-log"'), 4, "algorithm", "burst"),
    "failure mode": (limit('name="a"\nquota="1/s"\non_store_failure="fail"'), 4, "on_store_failure", '"deny", "allow"'),
    "cost is true": (limit('name="a"\nquota="1/s"\ncost=true'), 4, "cost", "true, a boolean; expected a whole number"),
    "cost is 0": (limit('name="a"\nquota="1/s"\ncost=0'), 4, "cost", "from 1"),
    "cost is a float": (limit('name="a"\nquota="1/s"\ncost=1.5'), 4, "cost", "1.5, a float"),
    "cost is infinite": (limit('name="a"\nquota="1/s"\ncost=inf'), 4, "cost", "inf, a float"),
    "cost is text": (limit('name="a"\nquota="1/s"\ncost="3"'), 4, "cost", "'3', a string"),
    "a date": (limit('name="a"\nquota="1/s"\ncost=2026-01-01'), 4, "cost", "a date or time"),
    "count_refused is text": (limit('name="a"\nquota="1/s"\ncount_refused="yes"'), 4, "count_refused", "true or false"),
    "count_refused on GCRA": (limit('name="a"\nquota="1/s"\ncount_refused=true'), 4, "count_refused", "windows"),
    "by is a number": (limit('name="a"\nquota="1/s"\nby=1'), 4, "by", "1, an integer"),
    "by holds a number": (limit('name="a"\nquota="1/s"\nby=["a",\n2]'), 5, "by[1]", "2, an integer"),
    "by is no name": (limit('name="a"\nquota="1/s"\nby=["client-ip"]'), 4, "by[0]", "did you mean 'client_ip'?"),
    "by is a parameter": (limit('name="a"\nquota="1/s"\nby="cost"'), 4, "by", "a parameter of hit()"),
    "by twice": (limit('name="a"\nquota="1/s"\nby=["a","a"]'), 4, "by", "twice"),
    "secret elsewhere": (limit('name="a"\nquota="1/s"\nsecret=["b"]'), 4, "secret", "not among by"),
    "longest elsewhere": (limit('name="a"\nquota="1/s"\nlongest="1h"'), 4, "longest", '"growing-wait"'),
    "longest is no duration": (
        limit('name="a"\nquota="1/s"\nalgorithm="growing-wait"\nlongest="soon"'), 5, "longest", "'soon'",
    ),
    "longest, whose words": (
        limit('name="a"\nquota="1/s"\nalgorithm="growing-wait"\nlongest="5 parsecs"'), 5, "longest", "duration '5 parsecs'",
    ),
    "interval": (limit('name="a"\ninterval="5 parsecs"'), 3, "interval", "duration '5 parsecs'"),
    "deadline": ('deadline="5 parsecs"\n' + limit('name="a"\nquota="1/s"'), 1, "deadline", "duration '5 parsecs'"),
    "longest too short": (
        limit('name="a"\nquota="1 per day"\nalgorithm="growing-wait"\nlongest="1h"'), 5, "longest", "at least",
    ),
    "numbers beside the quota": (limit('name="a"\nquota="1/s"\nburst=5'), 4, "burst", "belong into quota"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "says"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_said_with_its_place(text: str, line: int | None, key: str, says: str) -> None:
    """One mistake is one problem, which names the file, the line, the key and what would be accepted."""
    found = problem(text)
    assert (found.file, found.line) == ("limits.toml", line)
    assert found.key is not None
    assert found.key.endswith(key)
    assert says in found.problem
    place = "limits.toml" if line is None else f"limits.toml:{line}"
    assert str(found) == f"{place}: {found.key}: {found.problem}"
    assert "\n" not in str(found)


def test_two_limits_of_one_name_are_told_apart() -> None:
    """A name used twice names the line of the first use; one that differs only in case says so."""
    again = problem(limit('name = "a"\nquota = "1/s"') + limit('name = "a"\nquota = "2/s"'))
    assert (again.line, again.key) == (5, "policies.codes.limits[1].name")
    assert "on line 2" in again.problem
    case = read(limit('name = "per-ip"\nquota = "1/s"') + limit('name = "Per-IP"\nquota = "2/s"')).problems
    assert [found.line for found in case] == [5, 5]
    assert any("'Per-IP' differs only in case from 'per-ip'" in found.problem for found in case)
    policy = read("[policies.codes]\nlimits=[]\n[policies.Codes]\nlimits=[]").problems
    assert any("differs only in case from policies.codes on line 1" in found.problem for found in policy)


def test_the_same_name_in_two_policies_is_fine() -> None:
    """Names of limits are each policy's own."""
    text = '[[policies.{}.limits]]\nname = "per-ip"\nquota = "1/s"\n'
    assert list(policies(text.format("a") + text.format("b")).policies) == ["a", "b"]


def test_all_problems_are_reported_in_the_file_s_order() -> None:
    """Nobody mends a file one run at a time."""
    text = 'stor = "x"\n' + limit('name = "A"\nquota = "5/x"\ncost = -1\nby = ["a b", 3]') + limit("quota = 5\nkey = 1")
    found = read(text).problems
    assert [each.line for each in found] == [1, 3, 4, 5, 6, 7, 8, 9]
    with pytest.raises(ConfigError) as raised:
        read(text).policies()
    assert str(raised.value) == "\n".join(map(str, found))
    assert (raised.value.file, raised.value.line) == ("limits.toml", 1)


def test_one_mistake_does_not_cast_shadows() -> None:
    """What hangs on a key that is wrong is not reported beside it."""
    for keys in (
        'name = "a"\nquota = "5/x"\nalgorithm = "fixed-window"\ncount_refused = true',
        'name = "a"\nquota = "5/s"\nalgorithm = "fixedwindow"\ncount_refused = true',
        'name = "a"\nquota = "5/s"\nalgorytm = "fixed-window"\ncount_refused = true',
        'name = "a"\nquota = "5/s"\nby = ["a", 3]\nsecret = ["a"]',
        'name = "a"\nquota = "5/s"\nBy = ["a"]\nsecret = ["a"]',
        'name = "a"\nquota = "5/s"\nalgorithm = "growing"\nlongest = "1h"',
    ):
        assert len(read(limit(keys)).problems) == 1, keys


def test_an_empty_list_of_limits_is_a_warning() -> None:
    """A policy that limits nothing loads, and says so with its place."""
    file = policies("\n[policies.a]\nlimits = []\n")
    (warning,) = file.warnings
    assert file.policies["a"].limits == ()
    assert str(warning).startswith("limits.toml:3: policies.a.limits: ")
    assert "limits nothing" in warning.problem


@pytest.mark.parametrize(
    "store", ["redis://127.0.0.1", "rediss+cluster://cache:7000", "unix:///run/redis.sock", "postgresql://app@db/app"]
)
def test_nobody_leaves_open_what_a_request_meets_while_a_server_is_away(store: str) -> None:
    """A limit that can lose its store and does not say on_store_failure is a warning; one that says it, or needs no store, is none."""
    text = (
        f'store = "{store}"\n'
        '[[policies.a.limits]]\nname = "silent"\nquota = "5/day"\nby = "phone"\n'
        '[[policies.a.limits]]\nname = "tiers"\nquota = { free = "1/s", pro = "2/s" }\ntier = "plan"\nunknown_tier = "free"\n'
        '[[policies.a.limits]]\nname = "said"\nquota = "5/day"\non_store_failure = "deny"\n'
        '[[policies.a.limits]]\nname = "shut"\nquota = "block"\n'
        '[[policies.a.limits]]\nname = "watched"\nquota = "1/s"\nshadow = true\n'
    )
    first, second = policies(text).warnings
    assert str(first).startswith("limits.toml:2: policies.a.limits[0]: does not say on_store_failure")
    assert str(second).startswith("limits.toml:6: policies.a.limits[1]: does not say on_store_failure")
    assert '"deny"' in first.problem and '"allow"' in first.problem and '"local"' in first.problem
    for at_hand in ("memory://", "sqlite:///limits.db"):
        assert policies(text.replace(store, at_hand)).warnings == ()


SYNTAX = {
    "no quotes": ("[policies.a]\nquota = 5 per day\n", 2, "column 11"),
    "not closed": ('a = "x\nb = 1', 1, "column"),
    "a key twice": ("a = 1\na = 2\nb = 3", 2, "column 6"),
    "at the end": ("[policies.a]\nlimits = [", 2, "at the end of the file"),
    "a table twice": ("[a]\nb = 1\n[a]\n", 3, "column"),
    "YAML": ("policies:\n  codes: 1\n", 1, "column 9"),
}


@pytest.mark.parametrize(("text", "line", "says"), SYNTAX.values(), ids=SYNTAX)
def test_text_that_is_no_toml_says_where(text: str, line: int, says: str) -> None:
    """A syntax error has its file, line and column, and shows the line."""
    found = problem(text)
    assert (found.file, found.line) == ("limits.toml", line)
    assert "is not TOML" in found.problem
    assert says in found.problem


@pytest.mark.parametrize(
    "text",
    [
        "{key} = 1",
        "[{key}]\nx = 1",
        "[[{key}]]",
        "a = {{ {key} = 1 }}",
        "a = [{{ {key} = 1 }}]",
        '# "\n[a]\n\n{key} = 1',
    ],
)
@pytest.mark.parametrize(("parts", "joint"), [(20_000, "."), (65, '. "b".')])
def test_a_key_of_very_many_parts_is_one_short_problem(text: str, parts: int, joint: str) -> None:
    """Wherever it stands: a reader of TOML takes the square of their number, so it is not asked."""
    found = problem(text.format(key=joint.join("a" * parts)))
    assert "is nested too deeply; expected tables of limits" in str(found)


@pytest.mark.parametrize(
    "text", ['x = "{dots}"', "x = 1 # {dots}", '"{dots}" = 1', 'x = """\n{dots}"""', "x.y.z = '{dots}'"]
)
def test_dots_that_separate_no_keys_are_no_parts(text: str) -> None:
    """In texts, comments and quoted keys they mean nothing."""
    found = read(text.format(dots="a." * 20_000) + "\n" + limit('name="a"\nquota="1/s"')).problems
    assert not any("nested too deeply" in str(each) for each in found)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Missing, a folder, not UTF-8, nested without end: one clear line each."""
    (tmp_path / "latin1.toml").write_bytes(b'a = 1\nb = "\xe9"\n')
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    (tmp_path / "long.toml").write_text("a = 1" + "0" * 10_000)
    for name, says in {
        "none.toml": "none.toml: no such file",
        ".": "cannot be read (Is a directory)",
        "latin1.toml": "latin1.toml:2: is not UTF-8",
        "deep.toml": "nested too deeply",
        "long.toml": "cannot be read",
    }.items():
        (found,) = read_policy_file(tmp_path / name).problems
        assert says in str(found)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    """Editors that put one before the text do not break the file."""
    path = tmp_path / "limits.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BUILTIN_TEXT.replace("\n", "\r\n").encode())
    file = read_policy_file(path).policies()
    assert file.folder == tmp_path
    assert list(file.policies) == ["one-time-codes"]


def test_a_store_is_checked_by_whoever_knows_stores() -> None:
    """What the checker says of the URL is a problem at the key ``store``."""

    def check(url: str) -> None:
        raise ConfigError(f"{url} names no store")

    reading = read_policy_text('\nstore = "x"\n[policies.a]\nlimits=[]', file="f", folder=FOLDER, check_store=check)
    assert [str(found) for found in reading.problems] == ["f:2: store: x names no store"]
