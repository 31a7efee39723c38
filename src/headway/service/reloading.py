"""``Reloading``: a policy file that is read again while its policies are served, on SIGHUP and when it changes.

Everything new is built before anything old is given up, so a file with problems changes nothing.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from headway.errors import HeadwayError
from headway.policy.policy import PolicyFile
from headway.service.api import Api
from headway.service.opening import read_policies, secret_key
from headway.stores.base import AsyncStore, Store

__all__ = ["Mark", "Reloading", "mark"]

_LOOK_EVERY_S: Final = 0.5
Mark: TypeAlias = tuple[int, int, int, int] | None
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
        self.say = say
        self._store = store
        self._read = self._seen = read

    async def run(self) -> None:
        """Watch until cancelled: look at the file twice a second, and at once on SIGHUP."""
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
        if hangup is not None:
            loop.add_signal_handler(hangup, asked.set)
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asked.wait(), _LOOK_EVERY_S)
                if asked.is_set() or self.changed():
                    asked.clear()
                    await self.reload()
        finally:
            if hangup is not None:
                loop.remove_signal_handler(hangup)

    def changed(self) -> bool:
        """Whether the file is another than the one that was read, and has been the same since the last look.

        So a file that is being written, or that an editor is about to replace, is left until it is at rest.
        """
        now = mark(self.path)
        at_rest, self._seen = now == self._seen, now
        return at_rest and now != self._read

    async def reload(self) -> None:
        """Read the file again and serve it if nothing is wrong with it; say in one line what changed, or what is wrong.

        Says first what shadow limits would have refused so far: a policy that changes is counted anew.
        """
        for line in self.api.shadow_lines():
            self.say(line)
        if self.path is None:
            self.say("the built-in policies have no file, so there is nothing to reload")
            return
        self._read = self._seen = mark(self.path)  # before it is read: what is written meanwhile is a change
        try:
            reading = await asyncio.to_thread(read_policies, self.path)
            for warning in reading.warnings:
                self.say(f"warning: {warning}")
            if reading.file is None:
                for problem in reading.problems:
                    self.say(str(problem))
                self.say(f"{self.path} was not reloaded; {_KEPT}")
                return
            fixed = _fixed(self.api.file, reading.file)
            if fixed is not None:
                self.say(f"{self.path} was not reloaded: {fixed}; {_KEPT}")
                return
            said = _difference(self.api.file, reading.file)
            limits = [limit for policy in reading.file.policies.values() for limit in policy.plain_limits]
            self.api.replace(reading.file, secret_key(self._store, limits))
        except (HeadwayError, OSError) as error:
            self.say(f"{self.path} was not reloaded: {error}; {_KEPT}")
        else:
            self.say(f"{self.path} was reloaded: {said}")


def mark(path: Path | None) -> Mark:
    """What tells one content of a file from another without reading it; None where there is no file."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


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


def _difference(old: PolicyFile, new: PolicyFile) -> str:
    """What a reload changes, by names of policies."""
    kinds = {
        "added": [name for name in new.policies if name not in old.policies],
        "changed": [name for name in new.policies if old.policies.get(name, new.policies[name]) != new.policies[name]],
        "removed": [name for name in old.policies if name not in new.policies],
    }
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names) or "nothing changed"
