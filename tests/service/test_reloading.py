"""``Reloading`` by itself, and what a reload says and leaves alone; the running service is in ``test_reload``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from serving import serving

from headway import MemoryStore
from headway.policy.policy import PolicyFile
from headway.policy.toml import read_policy_text
from headway.service.api import Api
from headway.service.differences import differences
from headway.service.opening import read_policies
from headway.service.reloading import Reloading, mark
from headway.stores.sqlite import SqliteStore

CODES = '[[policies.codes.limits]]\nname = "resend"\nquota = "2 per day"\nby = "phone"\n'


def policies(text: str) -> PolicyFile:
    """The policies of a text."""
    return read_policy_text(text, file="limits.toml", folder=Path("/etc")).policies()


class Watch:
    """A service's API, its file and what is said, without the service around it."""

    def __init__(self, folder: Path, served: str, found: str) -> None:
        self.file = folder / "limits.toml"
        self.file.write_text(served, encoding="utf-8")
        store = MemoryStore()
        self.api = Api(read_policies(self.file).policies(), store)
        self.file.write_text(found, encoding="utf-8")
        self.said: list[str] = []
        self.reloading = Reloading(self.api, self.file, store, mark(self.file), self.said.append)

    def look(self) -> list[str]:
        """One look of the watch; what was said."""
        self.said.clear()
        if self.reloading.changed():
            asyncio.run(self.reloading.reload(by_hand=False))
        return list(self.said)

    @property
    def quota(self) -> str:
        return str(self.api.file.policies["codes"].plain_limits[0].quota)


def test_a_change_that_bears_the_date_of_the_one_before_is_seen(tmp_path: Path) -> None:
    """A file system may date two changes alike, so what was read soon after a change is read once more."""
    watch = Watch(tmp_path, CODES, CODES.replace("2 per", "3 per"))
    assert watch.look() == [f"{watch.file} was reloaded: changed codes"]
    assert watch.quota == "3/day"


@pytest.mark.parametrize("found", [CODES, "policies = 3\n", ""])
def test_what_is_read_once_more_is_said_once(tmp_path: Path, found: str) -> None:
    """Neither that nothing changed, nor what is wrong, is repeated while the file stays as it is."""
    watch = Watch(tmp_path, CODES, found)
    assert bool(watch.look()) == (found != CODES)
    assert watch.look() == []
    assert watch.look() == []


def test_a_change_of_the_same_length_and_date_is_seen(tmp_path: Path) -> None:
    """Copying tools set the date of what they copied; the system's own date of the change cannot be set."""
    watch = Watch(tmp_path, CODES, CODES)
    before = watch.file.stat()
    draft = tmp_path / "draft"
    draft.write_text(CODES.replace("2 per", "3 per"), encoding="utf-8")
    with watch.file.open("w", encoding="utf-8") as opened:
        opened.write(draft.read_text(encoding="utf-8"))
    os.utime(watch.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watch.look() == []  # not at rest yet
    assert watch.look() == [f"{watch.file} was reloaded: changed codes"]


def test_an_older_file_is_a_change_too(tmp_path: Path) -> None:
    """A roll-back brings an old date with it, and what a link points to may be exchanged."""
    watch = Watch(tmp_path, CODES, CODES)
    for number in (3, 4):
        other = tmp_path / f"version-{number}.toml"
        other.write_text(CODES.replace("2 per", f"{number} per"), encoding="utf-8")
        os.utime(other, (1_000_000_000 - number, 1_000_000_000 - number))
        link = tmp_path / "link"
        link.symlink_to(other)
        link.replace(watch.file)
        watch.look()
        assert watch.look() == [f"{watch.file} was reloaded: changed codes"]
        assert watch.quota == f"{number}/day"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes that have a name")
def test_a_pipe_in_the_file_s_place_does_not_stop_the_watch(tmp_path: Path) -> None:
    """Whoever reads a pipe waits for its writer; it is no policy file, and the next file is taken up."""
    watch = Watch(tmp_path, CODES, CODES)
    watch.file.unlink()
    os.mkfifo(watch.file)
    watch.look()
    assert watch.look()[0] == f"{watch.file}: is no regular file; expected a policy file in TOML"
    watch.file.unlink()
    watch.file.write_text(CODES.replace("2 per", "3 per"), encoding="utf-8")
    watch.look()
    assert watch.look() == [f"{watch.file} was reloaded: changed codes"]


def test_nobody_to_hear_it_does_not_stop_the_watch(tmp_path: Path) -> None:
    """A closed standard error is no reason to keep old policies."""
    watch = Watch(tmp_path, CODES, CODES.replace("2 per", "3 per"))

    def closed(_: str) -> None:
        raise BrokenPipeError

    deaf = Reloading(watch.api, watch.file, MemoryStore(), None, closed)
    asyncio.run(deaf.reload())
    assert watch.quota == "3/day"


def test_a_batch_is_decided_by_one_file(tmp_path: Path) -> None:
    """Policies that are replaced in the middle of a batch are those of the next one."""
    old, new = policies(CODES), policies(CODES.replace("resend", "other"))
    api = Api(old, SqliteStore(tmp_path / "state.db"))
    body = json.dumps([{"policy": "codes", "attributes": {"phone": str(n)}} for n in range(20)]).encode()

    async def ask() -> set[frozenset[str]]:
        seen, done = set(), False

        async def replace() -> None:
            while not done:
                for file in (new, old):
                    api.replace(file)
                    await asyncio.sleep(0)

        other = asyncio.create_task(replace())
        for _ in range(20):
            answers = json.loads((await api.decide(body, commit=False)).body)
            seen.add(frozenset(answer["decision"]["limit"] for answer in answers))
        done = True
        await other
        await api.close()
        return seen

    assert asyncio.run(ask()) <= {frozenset({"resend"}), frozenset({"other"})}


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (CODES, CODES.replace("2 per day", "9 per hour"), "changed codes"),
        (CODES, CODES + 'text = "No."\n', "changed codes"),
        (CODES, CODES + 'algorithm = "token-bucket"\n', "changed codes"),
        (
            CODES,
            CODES + 'algorithm = "fixed-window"\n',
            "changed codes (resend counts anew: gcra became fixed-window)",
        ),
        (
            CODES,
            CODES.replace('"phone"', '["phone", "ip"]'),
            "changed codes (resend counts anew: its key was phone, and is phone and ip)",
        ),
        (CODES, CODES + "secret = true\n", "changed codes (resend counts anew: other values of its key are secret)"),
        (CODES, CODES.replace("resend", "again"), "changed codes (new limit again, no limit resend any more)"),
        (CODES, CODES.replace("codes", "texts"), "added texts; removed codes"),
        (CODES, CODES + "[policies.codes]\nban = [{ phone = '1' }]\n", "changed codes (new limit banned)"),
        (CODES, "# the same\n" + CODES, "nothing changed"),
    ],
)
def test_what_changes_is_said_with_what_loses_its_state(before: str, after: str, says: str) -> None:
    """A quota may change and keys keep their state; a limit that is renamed or counted otherwise begins anew."""
    assert differences(policies(before), policies(after)) == says


def test_a_hangup_does_not_kill_a_service_that_stops(tmp_path: Path) -> None:
    """From SIGTERM to the end, SIGHUP after SIGHUP: the exit code is still 0."""
    with serving(tmp_path, CODES) as service:
        ended = threading.Event()

        def hang_up() -> None:
            while not ended.wait(0.005):
                service.process.send_signal(signal.SIGHUP)

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            code, said = service.stop()
        finally:
            ended.set()
            thread.join()
    assert code == 0
    assert said.endswith("stopped\n")
