"""Routes out of paths."""

from __future__ import annotations

import pytest

from headway.analysis.suggest.routes import NO_ROUTE, OTHER, Routes, template


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "/"),
        ("/items/1", "/items/{id}"),
        ("/items/2", "/items/{id}"),
        ("/items/2/reviews/77", "/items/{id}/reviews/{id}"),
        ("/users/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/users/{id}"),
        ("/users/3F2504E0-4F89-11D3-9A0C-0305E82C3301/x", "/users/{id}/x"),
        ("/c/0cc175b9c0f1b6a831c399e269772661", "/c/{id}"),
        ("/static/app.3f9c01d2.js", "/static/app.{id}.js"),
        ("/orders/ord_4fX9aB2cD8eF0gH1", "/orders/ord_{id}"),
        ("/archive/2015-10-25", "/archive/{id}"),
        ("/mail/ann@site.example", "/mail/{id}"),
        ("/post-12345", "/post-{id}"),
        ("/v1/items", "/v1/items"),
        ("/v2.1/items", "/v2.1/items"),
        ("/api/oauth2/token", "/api/oauth2/token"),
        ("/a-b_c.d/e", "/a-b_c.d/e"),
        ("/linux/installing-fedora-linux-via-pxe-x86-64", "/linux/installing-fedora-linux-via-pxe-x86-64"),
        ("/css/bootstrap.min.css", "/css/bootstrap.min.css"),
        ("*", "*"),
    ],
)
def test_ids_are_folded_and_words_are_not(path: str, route: str) -> None:
    """Numbers, UUIDs, hashes, dates and mail addresses are one route; versions, words and names are their own."""
    assert template(path) == route


def test_routes_are_numbered_by_method_and_template() -> None:
    """Two ids are one route, two methods are two, and no path is a route of its own."""
    routes = Routes()
    one, two = routes.number("GET", "/items/1"), routes.number("GET", "/items/2")
    assert one == two != routes.number("POST", "/items/2")
    assert routes.names[one] == "GET /items/{id}"
    assert routes.names[routes.number(None, None)] == NO_ROUTE


def test_many_names_under_one_path_are_values() -> None:
    """Titles that each have few requests become one route; a busy page beside them, and few pages, stay."""
    routes = Routes()
    title = [(routes.number("GET", f"/blog/{word}-story"), 3) for word in _words(100)]
    busy = (routes.number("GET", "/blog/about"), 5000)
    pages = [(routes.number("GET", f"/shop/{word}"), 3) for word in _words(10)]
    instead = routes.folded([*title, busy, *pages])
    assert set(instead) == {number for number, _ in title}
    assert {routes.names[number] for number in instead.values()} == {"GET /blog/{name}"}


def test_routes_are_bounded() -> None:
    """A million made-up paths do not fill the memory: from some number on they are one route."""
    routes = Routes()
    for word in _words(21_000):
        last = routes.number("GET", f"/{word}/x")
    assert routes.names[last] == OTHER
    assert len(routes.names) <= 20_002


def _words(count: int) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        letters[n // 676 % 26] + letters[n // 26 % 26] + letters[n % 26] + "q" * (n // 17_576) for n in range(count)
    ]
