"""Werkzeug's map of routes, which Flask and Quart use; whoever has one has Werkzeug."""

from __future__ import annotations

from typing import Any

from werkzeug.exceptions import HTTPException

__all__ = ["matched"]


def matched(app: Any, path: str, method: str, *, websocket: bool) -> tuple[Any, dict[str, object]] | None:
    """The rule that a request matches, and the values in it; None for no such page, no such method, or a redirect."""
    try:
        found: tuple[Any, dict[str, object]] = app.url_map.bind("localhost").match(
            path, method, return_rule=True, websocket=websocket
        )
    except HTTPException:
        return None
    return found
