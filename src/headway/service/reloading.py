"""``Reloading``: a policy file that is read again while its policies are served, on SIGHUP and when it changes.

Everything new is built before anything old is given up, so a file with problems changes nothing. A file is known by its
``Mark``; what was read within two seconds of a change is read again, for a file system may date two changes alike.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple, TypeAlias

from headway.errors import ConfigError, HeadwayError
from headway.policy.policy import PolicyFile
from headway.policy.toml import Reading
from headway.service.api import Api
from headway.service.differences import differences
from headway.service.opening import read_policies, secret_key
from headway.stores.base import AsyncStore, Store

__all__ = ["Mark", "Reloading", "mark"]

_LOOK_EVERY_S: Final = 0.5
_READ_AGAIN_S: Final = 0.05
_READ_AT_MOST: Final = 5
_YOUNG_NS: Final = 2_000_000_000
"""As coarse as file systems date changes (FAT: 2 s)."""


class _Seen(NamedTuple):
    """What ``mark`` looks at; ``changed`` is the one date that nobody sets, ``modified`` may be anything."""

    modified: int
    changed: int
    size: int
    number: int
    device: int
    regular: bool


Mark: TypeAlias = _Seen | None
"""See ``mark``."""
_KEPT: Final = "the policies stay as they were"


class Reloading:
    """Keeps an ``Api`` at what its file says.

    Args:
        api: serves the file's policies.
        path: the file, or None for the built-in policies.
        store: what the API was opened on.
        read: the ``mark`` of the file before it was read.
        say: called with each line that an operator should read.
    """

    def __init__(
        self, api: Api, path: Path | None, store: Store | AsyncStore, read: Mark, say: Callable[[str], None]
    ) -> None:
        self.api = api
        self.path = path
        self._out = say
        self._store = store
        self._read = self._seen = read
        self._young = _is_young(read)
        self._outcome = _outcome(Reading(api.file, (), api.file.warnings))

    async def run(self) -> None:
        """Watch until cancelled: look at the file twice a second, and at once on SIGHUP."""
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
        before = None if hangup is None else signal.getsignal(hangup)
        if hangup is not None:
            loop.add_signal_handler(hangup, asked.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY_S):  # wait_for may swallow a cancellation (Python 3.11)
                        await asked.wait()
                by_hand = asked.is_set()
                if by_hand or self.changed():
                    asked.clear()
                    await self.reload(by_hand=by_hand)
        finally:
            if hangup is not None:
                loop.remove_signal_handler(hangup)
                signal.signal(hangup, before)

    def changed(self) -> bool:
        """Whether the file may be another than the one that was read, and has been the same since the last look.

        So a file that is being written, or that an editor is about to replace, is left until it is at rest.
        """
        now = mark(self.path)
        at_rest, self._seen = now == self._seen, now
        return at_rest and (now != self._read or self._young)

    async def reload(self, *, by_hand: bool = True) -> None:
        """Read the file again and serve it if nothing is wrong with it; say in one line what changed, or what is wrong.

        Says first what shadow limits would have refused so far: a policy that changes is counted anew.

        Args:
            by_hand: somebody asked, and gets an answer even if there is nothing new.
        """
        if self.path is None:
            self._say_shadows()
            self.say("the built-in policies have no file, so there is nothing to reload")
            return
        known = self._read
        try:
            reading = await self._reading(self.path)
            outcome, self._outcome = self._outcome, _outcome(reading)
            if not by_hand and known == self._read and outcome == self._outcome:
                return  # a young file that was read once more, and nobody has written in the meantime
            self._say_shadows()
            self._take(self.path, reading)
        except Exception as error:  # whatever it is, the service and the next reload go on
            what = str(error) if isinstance(error, HeadwayError | OSError) else f"{type(error).__name__}: {error}"
            self.say(f"{self.path} was not reloaded: {what}; {_KEPT}")

    def say(self, line: str) -> None:
        """Say a line if anybody can hear it: a closed standard error must not end the watch."""
        with suppress(OSError, ValueError):
            self._out(line)

    async def _reading(self, path: Path) -> Reading:
        """The file's policies, read while nobody wrote."""
        tries = 0
        while True:
            self._read = self._seen = mark(path)  # before it is read: what is written meanwhile is a change
            self._young = _is_young(self._read)
            if self._read is not None and not self._read.regular:  # to read a pipe is to wait for whoever writes it
                problem = ConfigError("is no regular file; expected a policy file in TOML", file=str(path))
                return Reading(None, (problem,), ())
            reading = await asyncio.to_thread(read_policies, path)
            tries += 1
            if tries == _READ_AT_MOST or mark(path) == self._read:
                return reading
            await asyncio.sleep(_READ_AGAIN_S)

    def _say_shadows(self) -> None:
        for line in self.api.shadow_lines():
            self.say(line)

    def _take(self, path: Path, reading: Reading) -> None:
        for warning in reading.warnings:
            self.say(f"warning: {warning}")
        if reading.file is None:
            for problem in reading.problems:
                self.say(str(problem))
            self.say(f"{path} was not reloaded; {_KEPT}")
            return
        fixed = _fixed(self.api.file, reading.file)
        if fixed is not None:
            self.say(f"{path} was not reloaded: {fixed}; {_KEPT}")
            return
        said = differences(self.api.file, reading.file)
        limits = [limit for policy in reading.file.policies.values() for limit in policy.plain_limits]
        self.api.replace(reading.file, secret_key(self._store, limits))
        self.say(f"{path} was reloaded: {said}")


def mark(path: Path | None) -> Mark:
    """What tells one content of a file from another without reading it; None where there is no file."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    if found is None:
        return None
    return _Seen(
        found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev, S_ISREG(found.st_mode)
    )


def _outcome(reading: Reading) -> tuple[object, ...]:
    """What two readings have to have in common to be the same news."""
    said = (*map(str, reading.problems), *map(str, reading.warnings))
    file = reading.file
    return said if file is None else (*said, file.store, file.namespace, file.deadline_ns, file.policies)


def _is_young(seen: Mark) -> bool:
    """Whether a file changed so lately that one more change could bear the same date."""
    return seen is not None and 0 <= time.time_ns() - seen.changed < _YOUNG_NS


def _fixed(old: PolicyFile, new: PolicyFile) -> str | None:
    """What cannot change while the service runs and is different, or None."""
    for key, before, after in (
        ("store", old.store, new.store),
        ("namespace", old.namespace, new.namespace),
        ("deadline", old.deadline_ns, new.deadline_ns),
    ):
        if before != after:
            return f"{key} changed, and a running service keeps the one it began with; restart it to change that"
    return None
