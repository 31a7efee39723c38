"""What an agent says of itself: a browser, a crawler, a program's library, a scanner, a browser that a program drives."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from headway.analysis.suggest.crawleruseragents_list import find_crawler

__all__ = ["Agent", "AgentKind", "Agents"]


class AgentKind(StrEnum):
    """What an agent says it is."""

    BROWSER = "browser"
    """It looks like one a person uses."""
    CRAWLER = "crawler"
    """A search engine's, a preview's, a monitor's: one that says so."""
    LIBRARY = "library"
    """A program's HTTP library or tool, such as curl."""
    SCANNER = "scanner"
    """It looks for holes, and says so."""
    AUTOMATION = "automation"
    """A browser that a program drives."""
    NONE = "none"
    """It says nothing."""


class Agent(NamedTuple):
    """An agent's text, and what it says."""

    text: str
    kind: AgentKind
    name: str


_KINDS: Final = {
    "scanner": AgentKind.SCANNER,
    "http-library": AgentKind.LIBRARY,
    "browser-automation": AgentKind.AUTOMATION,
}
_TOOLS: Final = (
    "java/", "apache-httpclient", "postmanruntime", "insomnia", "axios", "node", "undici", "got (", "guzzlehttp", "dart",
    "reqwest", "rust", "perl", "libwww", "php", "ruby", "faraday", "restsharp", "dotnet", "microsoft.", "aiohttp", "httpx",
    "okhttp", "cfnetwork", "k6/", "locust", "jmeter", "vegeta", "hey/", "wrk", "ab/", "apachebench", "siege",
)  # fmt: skip
"""How programs begin that the list of crawlers does not have, because they do not crawl."""
_SCANNERS: Final = (
    "nuclei", "sqlmap", "nikto", "wpscan", "masscan", "nmap", "gobuster", "dirbuster", "feroxbuster", "ffuf", "acunetix",
    "nessus", "openvas", "zgrab", "l9explore", "censysinspect", "internet-measurement", "jaeles", "whatweb", "havij",
)  # fmt: skip
"""Words of scanners that the list does not have."""
_MOST: Final = 50_000
_LONGEST: Final = 300


class Agents:
    """The agents of a log by number: 0 says nothing. Bounded: too many different ones share the number 1."""

    def __init__(self) -> None:
        self.known: list[Agent] = [Agent("", AgentKind.NONE, "no agent"), Agent("(others)", AgentKind.BROWSER, "")]
        self._numbers: dict[str | None, int] = {None: 0}

    def number(self, text: str | None) -> int:
        """The number of an agent."""
        found = self._numbers.get(text)
        if found is None:
            if len(self.known) >= _MOST:
                return 1
            found = self._numbers[text] = len(self.known)
            self.known.append(_read((text or "")[:_LONGEST]))
        return found


def _read(text: str) -> Agent:
    crawler = find_crawler(text)
    if crawler is not None:
        name, tags = crawler
        kind = next((_KINDS[tag] for tag in tags if tag in _KINDS), AgentKind.CRAWLER)
        return Agent(text, kind, name)
    lower = text.lower()
    scanner = next((word for word in _SCANNERS if word in lower), None)
    if scanner is not None:
        return Agent(text, AgentKind.SCANNER, scanner)
    if "http://" in lower or "https://" in lower:  # no browser says where it is described
        return Agent(text, AgentKind.CRAWLER, text.partition("/")[0].partition("(")[0].strip() or text)
    if lower.startswith(_TOOLS):
        return Agent(text, AgentKind.LIBRARY, text.partition("/")[0])
    return Agent(text, AgentKind.BROWSER, "")
