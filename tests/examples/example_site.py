"""A real server for an example's real application, in a thread, on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

PATIENCE_S = 30


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve until the block ends; gives the address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    pause = threading.Event()
    try:
        for _ in range(PATIENCE_S * 100):
            if server.started:
                break
            pause.wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def client(address: str, **options: Any) -> httpx.Client:
    """A client that asks nobody else."""
    return httpx.Client(base_url=address, trust_env=False, timeout=PATIENCE_S, **options)
