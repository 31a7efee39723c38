"""Who is who, in traffic where it is known."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headway.analysis.suggest.agents import AgentKind, Agents
from headway.analysis.suggest.kinds import Kind
from headway.analysis.suggest.probes import is_probe
from headway.analysis.suggest.suggestion import Suggestion

from .made_traffic import GOOGLE, Made, browser


def kinds(found: Suggestion) -> dict[str, Kind]:
    """The kind of each client that is shown."""
    return {named.client: named.kind for kind in found.kinds for named in kind.examples if named.evidence}


def evidence(found: Suggestion, client: str) -> str:
    """Why a client is of its kind."""
    return "; ".join(
        text for kind in found.kinds for named in kind.examples if named.client == client for text in named.evidence
    )


@pytest.fixture(name="crowd")
def _crowd() -> Made:
    made = Made()
    made.people(300, random.Random(1))
    return made


def test_everybody_is_told_apart(crowd: Made, tmp_path: Path) -> None:
    """A crawler, a scanner, two bots, an office and a carrier are each known for what they are, and people for people."""
    chance = random.Random(2)
    for n in range(200):
        crowd.add(n * 97.3, "192.0.2.1", agent=GOOGLE, path=f"/items/{n}")
        crowd.add(n * 31.1, "192.0.2.2", path=("/wp-login.php", "/.env", "/.git/config")[n % 3], status=404)
        crowd.add(n, "192.0.2.3", path=f"/items/{n}")
        crowd.add(chance.random() * 80_000, "192.0.2.4", agent="python-requests/2.31")
        crowd.add(chance.random() * 3000, "192.0.2.5", agent=browser(n % 30))
        crowd.add(chance.random() * 80_000, "192.0.2.6", agent=browser(3), user=f"u{n % 7}")
        crowd.add(
            chance.random() * 80_000,
            "192.0.2.7",
            agent="Nuclei - Open-source project (github.com/projectdiscovery/nuclei)",
        )
        crowd.add(chance.random() * 80_000, "192.0.2.8", agent=None)
    found = crowd.suggested(tmp_path, goals=())
    assert kinds(found) == {
        "192.0.2.1": Kind.CRAWLER,
        "192.0.2.2": Kind.PROBE,
        "192.0.2.3": Kind.BOT,
        "192.0.2.4": Kind.BOT,
        "192.0.2.5": Kind.SHARED,
        "192.0.2.6": Kind.SHARED,
        "192.0.2.7": Kind.PROBE,
        "192.0.2.8": Kind.BOT,
    }
    assert {kind.kind: kind.clients for kind in found.kinds}[Kind.CLIENT] == 300
    assert sum(kind.requests for kind in found.kinds) == len(crowd.rows)
    assert evidence(found, "192.0.2.1") == "all 200 requests by an agent that says to be a crawler: Googlebot"
    assert evidence(found, "192.0.2.2").startswith("all 200 requests for 3 paths that scanners ask for, such as GET /")
    assert evidence(found, "192.0.2.3") == "paced by a machine: all 199 pauses are 1 s"
    assert evidence(found, "192.0.2.4") == "all 200 requests by a program's library: python-requests"
    assert evidence(found, "192.0.2.5").startswith("30 agents behind one address, ")
    assert evidence(found, "192.0.2.6") == "7 users behind one address"


def test_a_greedy_client_is_a_bot_and_an_office_as_busy_is_not(crowd: Made, tmp_path: Path) -> None:
    """Hundreds a minute by one agent are far beyond others; the same by forty people of usual pace are an office."""
    chance = random.Random(3)
    for _ in range(400):
        crowd.add(600 + chance.random() * 60, "192.0.2.1", agent=browser(5))
        crowd.add(600 + chance.random() * 60 * 5, "192.0.2.2", agent=browser(chance.randrange(40)))
    found = crowd.suggested(tmp_path, goals=())
    assert kinds(found) == {"192.0.2.1": Kind.BOT, "192.0.2.2": Kind.SHARED}
    assert "far beyond others: 400 requests in its busiest minute" in evidence(found, "192.0.2.1")


def test_an_agent_for_every_request_is_no_crowd(crowd: Made, tmp_path: Path) -> None:
    """A program that changes its agent each time is a bot, though its agents are many."""
    for n in range(300):
        crowd.add(n * 0.9 + n % 7 * 0.1, "192.0.2.1", agent=f"Mozilla/5.0 (X11; rv:{n}.0) Firefox/{n}.{n}")
    found = crowd.suggested(tmp_path, goals=())
    assert kinds(found) == {"192.0.2.1": Kind.BOT}
    assert "changes its agent with every request" in evidence(found, "192.0.2.1")


def test_an_open_page_is_no_bot(crowd: Made, tmp_path: Path) -> None:
    """A browser that asks the same once a minute, to the second, is an open page."""
    for n in range(600):
        crowd.add(n * 60, "192.0.2.1", path="/notifications")
    assert kinds(crowd.suggested(tmp_path, goals=())) == {}


def test_a_blogs_own_login_is_no_probe(crowd: Made, tmp_path: Path) -> None:
    """What scanners ask for is no evidence where the server has it."""
    for n in range(30):
        crowd.add(n * 700, "192.0.2.1", path="/wp-login.php", status=200)
    assert kinds(crowd.suggested(tmp_path, goals=())) == {}


def test_programs_are_clients_of_an_api(tmp_path: Path) -> None:
    """Where most requests come from programs, a program's library is no evidence."""
    made = Made()
    chance = random.Random(4)
    for n in range(2000):
        made.add(chance.random() * 80_000, f"10.0.0.{n % 50}", agent="python-requests/2.31" if n % 2 else None)
    assert kinds(made.suggested(tmp_path, goals=())) == {}


def test_who_signed_in_is_no_shared_address(tmp_path: Path) -> None:
    """Clients by user are nobody's office, however many agents they have."""
    made = Made()
    for n in range(400):
        made.add(n * 31.7, "192.0.2.1", user=f"u{n % 4}", agent=browser(n % 20))
    found = made.suggested(tmp_path, goals=())
    assert found.by == "user_or_address"
    assert kinds(found) == {}


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        (GOOGLE, AgentKind.CRAWLER, "Googlebot"),
        ("FreshReader/1.2 (Linux; https://freshreader.example)", AgentKind.CRAWLER, "FreshReader"),
        ("curl/8.5.0", AgentKind.LIBRARY, "curl"),
        ("Go-http-client/1.1", AgentKind.LIBRARY, "Go-http-client"),
        ("Java/17.0.2", AgentKind.LIBRARY, "Java"),
        (browser(40), AgentKind.BROWSER, ""),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Safari/604.1",
            AgentKind.BROWSER,
            "",
        ),
        (
            "Mozilla/5.0 (X11) AppleWebKit/537.36 HeadlessChrome/120.0 Safari/537.36",
            AgentKind.AUTOMATION,
            "HeadlessChrome",
        ),
        ("Mozilla/5.0 zgrab/0.x", AgentKind.SCANNER, "zgrab"),
    ],
)
def test_agents_say_what_they_are(text: str, kind: AgentKind, name: str) -> None:
    """Crawlers, libraries, scanners and driven browsers are known by the shared list, browsers are the rest."""
    agents = Agents()
    agent = agents.known[agents.number(text)]
    assert (agent.kind, agent.name) == (kind, name)


def test_agents_are_bounded() -> None:
    """A million different agents share a number from some point on; none at all is the number 0."""
    agents = Agents()
    agents.known *= 30_000
    assert agents.number("one more") == 1
    assert agents.number(None) == 0


@pytest.mark.parametrize(
    "path",
    ["/wp-login.php", "/.env", "/.env.production", "/.git/config", "/phpmyadmin/index.php", "/cgi-bin/luci", "/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php",
     "/actuator/health", "/..%2f..%2fetc/passwd", "/a/../../etc/passwd", "/backup.sql.gz", "/boaform/admin/formLogin", "/HNAP1/", "/.aws/credentials"],
)  # fmt: skip
def test_scanners_paths_are_known(path: str) -> None:
    """What scanners ask every server for is known."""
    assert is_probe(path)


@pytest.mark.parametrize(
    "path",
    ["/", "/login", "/environment", "/items/1", "/github", "/.well-known/acme-challenge/x", "/static/app.js", "/admin", "/information", "/api/config",
     "/docs/backup", "/robots.txt", "/favicon.ico", "/test"],
)  # fmt: skip
def test_honest_paths_are_no_probes(path: str) -> None:
    """Paths that people and programs ask for are not suspected."""
    assert not is_probe(path)
