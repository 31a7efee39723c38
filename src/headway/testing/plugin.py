"""The pytest plugin: loaded by pytest itself wherever headway is installed, so it loads nothing before it is used.

It offers the fixture ``headway_limits`` (see ``Isolation``), the ini option ``headway_isolate`` and the marker
``headway``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headway.testing.isolation import Isolation

_FIXTURE = "headway_limits"
_MARKER = (
    "headway(*, off=False, isolate=True): isolate all of headway's limiters during this test; off=True: they admit "
    "everything and count nothing; isolate=False: leave them alone although headway_isolate is set."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini option."""
    parser.addini(
        "headway_isolate",
        "run every test with all of headway's limiters on fresh memory and a manual clock (the fixture headway_limits)",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the fixture to every test that is marked, or to all.

    It comes before all other fixtures of a test, however it got there: what those make and ask is isolated too.
    """
    everywhere = config.getini("headway_isolate")
    for item in items:
        marker = item.get_closest_marker("headway")
        wanted = everywhere if marker is None else _options(item, marker)[1]
        names = getattr(item, "fixturenames", None)
        if names is not None and (wanted or _FIXTURE in names):
            others = [name for name in names if name != _FIXTURE]
            item.fixturenames = [_FIXTURE, *others]  # type: ignore[attr-defined]  # of functions and doctests


@pytest.fixture
def headway_limits(request: pytest.FixtureRequest) -> Iterator[Isolation]:
    """All of headway's limiters, on fresh memory and one manual clock until the test ends.

    ``.travel(seconds)`` and ``.clock``, ``.off()`` and ``.on()``, ``.reset()``; see ``headway.testing.Isolation``.
    """
    from headway.testing.isolation import isolated

    marker = request.node.get_closest_marker("headway")
    with isolated() as isolation:
        if marker is not None and _options(request.node, marker)[0]:
            isolation.off()
        yield isolation


def _options(item: pytest.Item, marker: pytest.Mark) -> tuple[bool, bool]:
    """(off, isolate) of a marker.

    Raises:
        pytest.UsageError: anything else is given; names the test.
    """
    given = {"off": False, "isolate": True, **marker.kwargs}
    off, isolate = given.pop("off"), given.pop("isolate")
    if marker.args or given or type(off) is not bool or type(isolate) is not bool or (off and not isolate):
        shown = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        raise pytest.UsageError(
            f"{item.nodeid}: the marker headway({shown}) says nothing known; expected headway(), headway(off=True) "
            "or headway(isolate=False)"
        )
    return off, isolate
