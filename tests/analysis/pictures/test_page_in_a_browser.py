"""The report page in a real browser: on a telephone and a desk, on light and on dark paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import FAINT, Browser
from headway.analysis.pictures.html import html_page

from .examples import CHARTS, report

pytestmark = pytest.mark.xdist_group("browser")

SEEN = """[...document.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0)
  .map(svg => [svg.getBoundingClientRect().width, Math.min(...[...svg.querySelectorAll("text")]
    .map(text => parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)),
    [...svg.querySelectorAll("text")].filter(text => text.getBoundingClientRect().right > innerWidth + 1).length])"""
"""An expression: for each chart that is shown its width, its smallest text in pixels, and how many texts stick out."""
PAPER = "getComputedStyle(document.body).backgroundColor"
SCROLLS = """[...document.querySelectorAll(".scroll")].filter(box => box.checkVisibility())
  .map(box => box.scrollWidth > box.clientWidth)"""
COLOURS = """(async () => {
  const svg = [...document.querySelectorAll("svg")].find(svg => svg.getBoundingClientRect().width > 0);
  return [...svg.querySelectorAll("[class^=f]")].map(part => getComputedStyle(part).fill);
})()"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with everything in it."""
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_page(report("stopped by Ctrl-C after 7 lines")), "utf-8")
    return path.as_uri()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_the_page_can_be_read(browser: Browser, url: str, width: int, dark: bool) -> None:
    """At any width and on either paper: no complaint, nothing loaded, nothing sticks out, every text stands out, every chart shows."""
    with browser.page(url, width=width, dark=dark) as page:
        assert page.complaints() == []
        assert page.asked_for() == [url]
        assert page.run(PAPER) == ("rgb(22, 22, 26)" if dark else "rgb(255, 255, 255)")
        assert page.too_wide() == (0, [])
        assert page.run(FAINT) == []
        charts = page.run(SEEN)
        assert len(charts) == len(CHARTS)
        for across, smallest, sticking_out in charts:
            assert across > 0.75 * min(width, 752)
            assert smallest >= 10
            assert sticking_out == 0
        assert len(set(page.picture())) > 100


def test_a_wide_table_scrolls_in_its_own_box(browser: Browser, url: str) -> None:
    """On a telephone a wide table scrolls in its box, and the page does not."""
    with browser.page(url, width=360) as page:
        assert page.run(SCROLLS) == [True]
        page.run("document.querySelectorAll('details').forEach(details => details.open = true)")
        assert page.too_wide() == (0, [])
        assert len(page.run(SCROLLS)) == len(CHARTS) + 1


def test_charts_change_their_colours_with_the_paper(browser: Browser, url: str) -> None:
    """Every colour of a chart is another one on dark paper."""
    with browser.page(url) as light, browser.page(url, dark=True) as dark:
        before, after = light.run(COLOURS), dark.run(COLOURS)
    assert len(before) == len(after) > 10
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_the_browsers_eyes_are_good(browser: Browser, tmp_path: Path) -> None:
    """The checks see a faint text, a page that is too wide, a script that throws and a picture from elsewhere."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'><main><p style='color:#999;background:#fff'>faint</p><div style='width:900px'>wide</div>"
        "<img src='http://127.0.0.1:9/x.png'></main><script>throw new Error('no')</script>"
    )
    with browser.page(path.as_uri(), width=360) as page:
        assert [text for text, _ in page.run(FAINT)] == ["faint"]
        assert page.too_wide()[0] > 0
        assert "DIV" in page.too_wide()[1]
        assert any("no" in line for line in page.complaints())
        assert "http://127.0.0.1:9/x.png" in page.asked_for()
