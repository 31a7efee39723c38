"""The report page of every command that makes one, in a real browser, made from a log that means ill."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import FAINT, Browser
from headway.cli import main

pytestmark = pytest.mark.xdist_group("browser")

LINE = '{} - {} [25/Oct/2015:{:02}:{:02}:{:02} +0000] "GET {} HTTP/1.1" 200 5 "-" "{}"\n'
HOSTILE = (
    "</title><script>document.title='taken'</script><img/src='http://127.0.0.1:9/x'/onerror='alert(1)'>" + "w" * 200
)
COMMANDS = {
    "compare": ["compare", "--limit", "10 per 60s", "--log", "access.log", "--by", "agent", "--algorithm", "gcra"],
    "compare-pattern": ["compare", "--pattern", "drip-pause"],
    "suggest": ["suggest", "access.log"],
    "replay": ["replay", "--limit", "10 per 60s", "access.log", "--by", "agent", "--series", "1m"],
}
CHARTS = "[...document.querySelectorAll('svg')].filter(svg => svg.checkVisibility()).length"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two hours in which paths, agents and users are markup."""
    path = tmp_path_factory.mktemp("pages")
    lines = []
    for second in range(0, 7200, 3):
        client = second % 17
        hour, minute = divmod(second // 60, 60)
        agent = HOSTILE if client == 3 else f"Firefox/{client}"
        target = "/<b>" if client == 4 else f"/items/{second}"
        times = 6 if client == 3 else 1
        lines += [LINE.format(f"203.0.113.{client}", "-", hour, minute, second % 60, target, agent)] * times
    (path / "access.log").write_text("".join(lines))
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_page_can_be_read(
    command: str, folder: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a telephone and a desk, on both papers: nothing runs, loads or sticks out, every text stands out, a chart shows."""
    monkeypatch.chdir(folder)
    page_path = folder / f"{command}.html"
    assert main([*COMMANDS[command], "--html", str(page_path)]) == 0
    capsys.readouterr()
    url = page_path.as_uri()
    for width, dark in ((360, True), (1280, False)):
        with browser.page(url, width=width, dark=dark) as page:
            assert page.complaints() == []
            assert page.asked_for() == [url]
            assert page.run("document.title") != "taken"
            assert page.run("document.scripts.length + document.images.length") == 0
            assert page.too_wide() == (0, [])
            assert page.run(FAINT) == []
            assert page.run(CHARTS) >= 1
            page.run("document.querySelectorAll('details').forEach(details => details.open = true)")
            assert page.too_wide() == (0, [])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_every_commands_picture_is_drawn(
    command: str, suffix: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same log gives a picture of either kind."""
    monkeypatch.chdir(folder)
    path = folder / f"{command}.{suffix}"
    assert main([*COMMANDS[command], "--plot", str(path)]) == 0
    capsys.readouterr()
    assert path.stat().st_size > 1_000
