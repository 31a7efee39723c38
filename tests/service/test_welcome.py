"""What the service prints when it listens."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from headway.policy.builtin import builtin_policies
from headway.policy.toml import read_policy_text
from headway.service.welcome import base_url, is_loopback, welcome

FOLDER = Path("/srv")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("2001:db8::7", "http://[2001:db8::7]:80"),
        ("192.0.2.7", "http://192.0.2.7:80"),
    ],
)
def test_the_url_reaches_the_socket(host: str, url: str) -> None:
    """Wildcards are reached through loopback, IPv6 addresses stand in brackets."""
    assert base_url(host, 80) == url


def test_loopback_is_known_in_both_families() -> None:
    """Only what no other machine reaches is loopback."""
    assert [is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.0.2.7", "fe80::1%eth0")] == [False] * 4


def test_three_lines_are_for_pasting() -> None:
    """The first two are one request with every attribute the policy asks for; the text says why it is refused."""
    text = welcome(builtin_policies(FOLDER), "http://127.0.0.1:8440", "/srv/limits.db")
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("curl ")]
    assert lines[0] == lines[1]
    assert lines[0][:4] == ["curl", "-i", "http://127.0.0.1:8440/v1/check", "-d"]
    body = json.loads(lines[0][4])
    assert body["policy"] == "one-time-codes"
    assert body["attributes"].keys() == {"phone", "ip"}
    assert body["attributes"]["phone"].startswith("+447700900")
    assert lines[2] == ["curl", "http://127.0.0.1:8440/v1/policies"]
    assert "resend admits 1/minute" in text


def test_any_policy_has_its_lines() -> None:
    """Attributes of any name get a value, and no refusal is promised where none comes at once."""
    limits = '[[policies.a.limits]]\nname = "l"\nquota = "5/s"\nby = ["account", "client_ip"]\n'
    text = welcome(read_policy_text(limits, file="f", folder=FOLDER).policies(), "http://h:1", "memory://")
    body = json.loads(shlex.split(text.splitlines()[-2])[4])
    assert body["attributes"]["client_ip"].startswith("203.0.113.")
    assert body["attributes"]["account"].startswith("example-")
    assert "refusal" not in text
