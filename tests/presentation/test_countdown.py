"""The page's script, run by a real JavaScript engine against a clock that the test moves."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from headway.core.quota import HOUR, SECOND
from headway.presentation.response import respond

from .verdicts import one_refusal

NODE = shutil.which("node")
HARNESS = """
const [script, problem, times] = JSON.parse(require("fs").readFileSync(0, "utf8"));
let now = 5000, pending = null, calls = 0;
const made = (over) => ({ hidden: true, textContent: "", getAttribute: () => over });
const elements = { left: made(), again: made(), status: made("over") };
elements.problem = { textContent: problem };
elements.status.textContent = "sentence";
const document = { getElementById: (id) => elements[id] };
const performance = { now: () => now };
const setTimeout = (callback, ms) => { pending = [callback, now + ms]; calls += 1; };
new Function("document", "performance", "setTimeout", script)(document, performance, setTimeout);
const seen = [];
for (const time of times) {
  while (pending && pending[1] <= 5000 + time) { const [go, at] = pending; pending = null; now = at; go(); }
  now = 5000 + time;
  const { left, again, status } = elements;
  seen.push([left.hidden ? null : left.textContent, !again.hidden, status.textContent]);
}
console.log(JSON.stringify([seen, pending === null, calls]));
"""


def watch(wait: int, times: list[int]) -> tuple[list[list[object]], bool, int]:
    """What the page shows after so many milliseconds; whether the script has ended; how often it woke."""
    text = respond(one_refusal(wait), accept="text/html").body.decode()
    script = text.split("<script>")[1].split("</script>")[0]
    problem = text.split('id="problem">')[1].split("</script>")[0]
    assert NODE is not None
    command = [NODE, "-e", HARNESS]
    given = json.dumps([script, problem, times])
    shown = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=30).stdout
    seen, ended, calls = json.loads(shown)
    return seen, ended, calls


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_countdown_counts_up_to_the_exact_wait_and_speaks_once() -> None:
    """The countdown shows the time left rounded up, never ends early, changes the spoken status once, then stops."""
    seen, ended, _ = watch(2 * SECOND + SECOND // 2, [0, 400, 600, 1600, 2499, 2502])
    assert seen == [
        ["0:03", False, "sentence"],
        ["0:03", False, "sentence"],
        ["0:02", False, "sentence"],
        ["0:01", False, "sentence"],
        ["0:01", False, "sentence"],
        [None, True, "over"],
    ]
    assert ended


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_countdown_shows_hours_and_wakes_once_a_second() -> None:
    """Long waits are shown with hours, and the script wakes no more than about once a second."""
    seen, ended, calls = watch(25 * HOUR, [0, 60_002])
    assert [row[0] for row in seen] == ["25:00:00", "24:59:00"]
    assert not ended
    assert calls <= 63
