"""Configurations of thousands of limits: names, notes and lines are right, and nothing is looked for in everything before."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import pytest

from analysis.convert.policies import converted, limits
from headway.analysis.convert.convert import SOURCES
from headway.analysis.convert.draft import Names


def _nginx(count: int) -> str:
    zones = "".join(f"limit_req_zone $uri zone=zone{one}:1m rate=9r/s;\n" for one in range(count))
    places = "".join(f"location /{one} {{ limit_req zone=zone{one} burst={one % 5}; }}\n" for one in range(count))
    return f"http {{ {zones} server {{ {places} }} }}"


def _envoy(count: int) -> str:
    rules = (
        f"- {{key: user, value: u{one}, rate_limit: {{name: a, unit: day, requests_per_unit: 9}}}}\n"
        for one in range(count)
    )
    return f"domain: d\ndescriptors:\n{''.join(rules)}"


def _express(count: int) -> str:
    return "".join(f"const a{one} = rateLimit({{\n  windowMs: 1000, limit: 5\n}})\n" for one in range(count))


def _express_json(count: int) -> str:
    return json.dumps({f"a{one}": {"windowMs": 1000, "limit": 5} for one in range(count)}, indent=1)


@pytest.mark.parametrize(
    ("source", "made"),
    [("nginx", _nginx), ("express", _express), ("express", _express_json)],
)
def test_ten_times_the_limits_do_not_take_a_hundred_times_as_long(source: str, made: Callable[[int], str]) -> None:
    """A configuration of 3,000 limits takes about ten times as long to read as one of 300."""

    def seconds(text: str) -> float:
        started = process_time()
        SOURCES[source](text, "given")
        return process_time() - started

    few, many = made(300), made(3000)
    least = min(seconds(few) for _ in range(3))
    assert any(seconds(many) < 25 * least for _ in range(3))  # other work on the machine makes some readings slower


def test_rules_of_one_name_each_get_their_own() -> None:
    """Four hundred rules of one level and one name are four hundred limits, each with a name of its own."""
    found = limits(converted(_envoy(400)))
    assert [limit["name"] for limit in found] == ["a", *(f"a-{number}" for number in range(2, 401))]


def test_names_stay_within_a_header_however_many_there_are() -> None:
    """The hundred-thousandth of one long name is still at most 64 characters, and a name that looks like a numbered one is kept apart."""
    names = Names()
    given = [names.take("n" * 80) for _ in range(100_000)]
    assert len({*given}) == len(given)
    assert max(map(len, given)) == 64
    apart = Names()
    assert [apart.take(text) for text in ("a-2", "a", "a", "a", "a-2")] == ["a-2", "a", "a-3", "a-4", "a-2-2"]


def test_a_note_stays_with_its_own_policys_limit() -> None:
    """Where two policies have a limit of one name, a note about one of them does not stand above the other."""
    text = converted(
        "@limiter.limit('0/day')\ndef closed(): pass\n\n@limiter.limit('5/day')\ndef opened(): pass\n"
    ).text
    closed, opened = text.split("[[policies.opened.limits]]")
    assert "NOT EXACT (line 1): 0 is refused" in closed
    assert "NOT EXACT" not in opened


def test_functions_that_differ_in_case_are_two_policies() -> None:
    """Names that are the same once they are safe belong to two functions, so their limits are not added up."""
    found = converted("@limiter.limit('3/day')\ndef Login(): pass\n\n@limiter.limit('5/day')\ndef login(): pass\n")
    assert [len(limits(found, name)) for name in ("login", "login-2")] == [1, 1]


def test_each_object_of_a_json_document_has_its_own_line() -> None:
    """The notes of an array's second object name the second object's line, not the first one's."""
    objects = [{"windowMs": 1000, "limit": 1}, {"windowMs": 2000, "limit": 1, "skip": "code"}]
    found = converted(json.dumps(objects, indent=1))
    assert [note.line for note in found.notes if "skip" in note.what] == [9]


def test_a_file_that_many_servers_include_is_found_by_its_name() -> None:
    """An include without wildcards takes the file of that name, one with wildcards every file that fits, itself left out."""
    text = """# configuration file /etc/nginx.conf:
http { limit_req_zone $uri zone=a:1m rate=1r/s; include sites/*; }
# configuration file /etc/sites/one:
server { server_name one; include snippet; }
# configuration file /etc/sites/two:
server { server_name two; include snippet; include missing; }
# configuration file /etc/snippet:
location /x { limit_req zone=a; }
"""
    found = converted(text)
    (limit,) = limits(found)
    assert limit["when"]["location"]["is"] == ["one /x", "two /x"]
    assert "include missing is not read: convert the output of nginx -T" in [note.what for note in found.notes]
