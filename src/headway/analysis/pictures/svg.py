"""From the SVG that a plotting library writes to one that fits into any page: small, themed, and named.

No style attribute, no id, no reference to anything inside or outside of the file is left, so a page's strictest policy lets
it through and several fit into one page. Colours stay as attributes, for programs that know no CSS, with a class each,
so that a style sheet can exchange them for dark paper.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import escape
from typing import Final

__all__ = ["restyled"]

_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_KEPT: Final = frozenset(
    ("fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "fill-opacity", "opacity", "text-anchor")
) | {"font-size", "font-weight", "d", "x", "y", "transform"}
_UNTURNED: Final = re.compile(r"\s*rotate\(-?0(?:\.0*)?(?: [^)]*)?\)")


def restyled(source: str, *, title: str, description: str, style: str = "", paper: str = "", name: str = "") -> str:
    """The picture as one ``svg`` element.

    Args:
        source: an SVG file of paths, texts and groups, as this project's charts are drawn.
        title: names the picture.
        description: says what it shows.
        style: CSS that goes into the element; empty for a picture whose page has it.
        paper: the background's colour; empty for none.
        name: makes the ids of title and description; must differ from those of other pictures on the page.
    """
    root = ET.fromstring(source)  # noqa: S314  # our own library wrote it
    _, _, width, height = root.attrib["viewBox"].split()
    body = "".join(_element(child) for child in root)
    if paper:
        body = f'<rect width="{width}" height="{height}" fill="{paper}" class="f{paper[1:]}"/>' + body
    named = (f"{name}-title", f"{name}-desc") if name else ()
    ids = [f' id="{one}"' for one in named] or ["", ""]
    labelled = f' aria-labelledby="{" ".join(named)}"' if named else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"{labelled} font-family="system-ui, \'DejaVu Sans\', sans-serif">'
        f"<title{ids[0]}>{escape(title)}</title><desc{ids[1]}>{escape(description)}</desc>"
        f"{f'<style>{style}</style>' if style else ''}{body}</svg>"
    )


def _element(element: ET.Element) -> str:
    tag = element.tag.removeprefix(_NAMESPACE)
    if tag == "g":
        return "".join(map(_element, element))
    if tag not in ("path", "text"):
        return ""
    attributes = _attributes(element)
    if tag == "path" and attributes.get("fill") == "none" and "stroke" not in attributes:
        return ""  # the plot's invisible frames
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{written}/>" if tag == "path" else f"<{tag}{written}>{escape(element.text or '')}</{tag}>"


def _attributes(element: ET.Element) -> dict[str, str]:
    found = dict(element.attrib)
    for part in found.pop("style", "").split(";"):
        name, _, value = part.partition(":")
        found[name.strip()] = value.strip()
    kept = {name: _short(value) for name, value in found.items() if name in _KEPT}
    if "transform" in kept:
        kept["transform"] = _UNTURNED.sub("", kept["transform"])
        if not kept["transform"]:
            del kept["transform"]
    if element.tag.endswith("text"):
        kept.setdefault("fill", "#000000")
    classes = [
        f"{letter}{kept[name][1:]}"
        for name, letter in (("fill", "f"), ("stroke", "k"))
        if kept.get(name, "").startswith("#")
    ]
    return kept | ({"class": " ".join(classes)} if classes else {})


def _short(value: str) -> str:
    """Numbers to a tenth of a unit, which is less than any eye sees; line breaks as spaces."""
    return " ".join(_NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), value).split())
