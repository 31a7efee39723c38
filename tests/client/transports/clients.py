"""Each client library with its patient transport, asked through one function; async ones run a loop of their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import requests
import urllib3

from headway.client import (
    transport_aiohttp,
    transport_httpx,
    transport_httpx2,
    transport_requests,
    transport_urllib3,
)
from headway.client.pace import AsyncPace

Got = tuple[int, bytes]
Ask = Callable[..., Got]
"""``ask(method, url, headers=…, body=…, times=…, **options of the transport)``: status and body of the last answer."""


def with_httpx(method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, **options: Any) -> Got:
    """httpx, synchronous."""
    with httpx.Client(
        transport=transport_httpx.PatientTransport(httpx.HTTPTransport(verify=False), **options),
        timeout=5,
        follow_redirects=True,
    ) as client:
        for _ in range(times):
            response = client.request(method, url, headers=headers, content=body)
            response.read()
            assert response.elapsed
        return response.status_code, response.content


def with_httpx2(method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, **options: Any) -> Got:
    """httpx2, synchronous."""
    transport = transport_httpx2.PatientTransport(httpx2.HTTPTransport(verify=False), **options)
    with httpx2.Client(transport=transport, timeout=5, follow_redirects=True) as client:
        for _ in range(times):
            response = client.request(method, url, headers=headers, content=body)
        return response.status_code, response.content


def with_httpx_async(
    method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, pace: Any = None, **options: Any
) -> Got:
    """httpx, asynchronous."""

    async def main() -> Got:
        transport = transport_httpx.AsyncPatientTransport(
            httpx.AsyncHTTPTransport(verify=False), pace=_twin(pace), **options
        )
        async with httpx.AsyncClient(transport=transport, timeout=5, follow_redirects=True) as client:
            for _ in range(times):
                response = await client.request(method, url, headers=headers, content=_async(body))
            return response.status_code, response.content

    return asyncio.run(main())


def with_httpx2_async(
    method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, pace: Any = None, **options: Any
) -> Got:
    """httpx2, asynchronous."""

    async def main() -> Got:
        transport = transport_httpx2.AsyncPatientTransport(
            httpx2.AsyncHTTPTransport(verify=False), pace=_twin(pace), **options
        )
        async with httpx2.AsyncClient(transport=transport, timeout=5, follow_redirects=True) as client:
            for _ in range(times):
                response = await client.request(method, url, headers=headers, content=_async(body))
            return response.status_code, response.content

    return asyncio.run(main())


def with_requests(
    method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, **options: Any
) -> Got:
    """Requests."""
    with transport_requests.patient(requests.Session(), **options) as session:
        session.trust_env = False
        for _ in range(times):
            response = session.request(method, url, headers=headers, data=body, timeout=5)
        return response.status_code, response.content


def with_aiohttp(
    method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, pace: Any = None, **options: Any
) -> Got:
    """Aiohttp."""

    async def main() -> Got:
        middleware = transport_aiohttp.patient(pace=_twin(pace), **options)
        async with aiohttp.ClientSession(middlewares=(middleware,)) as session:
            for _ in range(times):
                async with session.request(method, url, headers=headers, data=_async(body)) as response:
                    status, content = response.status, await response.read()
            return status, content

    return asyncio.run(main())


def with_urllib3(
    method: str, url: str, *, headers: Any = None, body: Any = None, times: int = 1, **options: Any
) -> Got:
    """urllib3."""
    with urllib3.PoolManager(timeout=5) as manager:
        patient = transport_urllib3.PatientManager(manager, **options)
        for _ in range(times):
            response = patient.request(method, url, headers=headers, body=body)
        return response.status, response.data


CLIENTS: dict[str, Ask] = {
    "httpx": with_httpx,
    "httpx-async": with_httpx_async,
    "httpx2": with_httpx2,
    "httpx2-async": with_httpx2_async,
    "requests": with_requests,
    "aiohttp": with_aiohttp,
    "urllib3": with_urllib3,
}


def _async(body: Any) -> Any:
    """A one-way body for an asynchronous client."""
    if not inspect.isgenerator(body):
        return body

    async def parts() -> Any:
        for part in body:
            yield part

    return parts()


def _twin(pace: Any) -> Any:
    """The asynchronous twin of a pace, on the same store."""
    return (
        None
        if pace is None
        else AsyncPace(*pace.limits, store=pace.store, by=pace.by, name=pace.name, timer=pace.timer)
    )
