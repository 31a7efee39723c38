"""Draw the pictures of docs/images that commands make: ``uv run python docs/pictures.py``.

Charts come from ``headway … --plot``, screenshots from its report pages in a real browser (Chromium; see
``scripts/install-servers``). The commands are those that the pages name.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from headway.cli import main as headway

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"

CHARTS = {
    "compare-window-edge.svg": "compare --pattern window-edge "
    "--algorithm fixed-window --algorithm sliding-window --algorithm gcra",
    "compare-drip-pause.svg": "compare --pattern drip-pause --algorithm leaky-bucket-drip --algorithm gcra",
    "compare-herd.svg": "compare --pattern herd --algorithm fixed-window --algorithm gcra --algorithm leaky-bucket-queue",
}
SCREENSHOTS = {
    "report-desk.png": ("compare --pattern greedy", 1024, 900, False),
    "report-phone.png": ("compare --pattern greedy", 360, 740, True),
}


def main() -> None:
    """Write all of them."""
    for name, command in CHARTS.items():
        _run(f"{command} --plot", IMAGES / name)
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import Browser

    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        for name, (command, width, height, dark) in SCREENSHOTS.items():
            page = Path(folder) / "report.html"
            _run(f"{command} --html", page)
            with browser.page(page.as_uri(), width=width, height=height, dark=dark) as shown:
                (IMAGES / name).write_bytes(shown.picture(whole=False))


def _run(command: str, path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        status = headway([*command.split(), str(path)])
    if status:
        raise SystemExit(f"headway {command}: exit status {status}")


if __name__ == "__main__":
    main()
