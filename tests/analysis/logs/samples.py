"""The same request, and one after it, as every format writes it."""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from pathlib import Path

from headway.analysis.logs.block import FIELDS, Block
from headway.analysis.logs.read import read_source
from headway.analysis.logs.sources import Source

AT = 1_445_742_685_000_000_000
"""25 October 2015, 04:11:25 +0100, in ns since 1970."""
STAMP = "25/Oct/2015:04:11:25 +0100"
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:35.0) Gecko/20100101 Firefox/35.0"
TAIL = f'- bob [{STAMP}] "GET /items/1?q=x%20y HTTP/1.1" 404 512'

COMMON = f"198.51.100.7 {TAIL}\n"
COMBINED = f'198.51.100.7 {TAIL} "https://site.example/" "{AGENT}"\n'
VHOST = f"www.site.example:443 {COMBINED}"
TRAEFIK = f'{COMBINED[:-1]} 1027 "web@docker" "http://10.0.0.9:80" 17ms\n'
NGINX = json.dumps(
    {
        "time_iso8601": "2015-10-25T04:11:25+01:00",
        "remote_addr": "198.51.100.7",
        "remote_user": "bob",
        "request": "GET /items/1?q=x%20y HTTP/1.1",
        "status": "404",
        "body_bytes_sent": "512",
        "http_referer": "https://site.example/",
        "http_user_agent": AGENT,
        "http_x_api_key": "k-1",
        "request_time": "0.017",
        "host": "www.site.example",
    }
)
CADDY = json.dumps(
    {
        "level": "info",
        "ts": 1445742685.0,
        "logger": "http.log.access.log0",
        "msg": "handled request",
        "request": {
            "remote_ip": "192.0.2.200",
            "remote_port": "41342",
            "client_ip": "198.51.100.7",
            "proto": "HTTP/2.0",
            "method": "GET",
            "host": "www.site.example:443",
            "uri": "/items/1?q=x%20y",
            "headers": {"User-Agent": [AGENT], "Referer": ["https://site.example/"], "X-Api-Key": ["k-1"]},
        },
        "user_id": "bob",
        "duration": 0.017,
        "size": 512,
        "status": 404,
    }
)
TRAEFIK_JSON = json.dumps(
    {
        "ClientAddr": "198.51.100.7:5055",
        "ClientHost": "198.51.100.7",
        "ClientUsername": "bob",
        "DownstreamContentSize": 512,
        "DownstreamStatus": 404,
        "Duration": 17000000,
        "RequestAddr": "www.site.example:443",
        "RequestHost": "www.site.example",
        "RequestMethod": "GET",
        "RequestPath": "/items/1?q=x%20y",
        "StartUTC": "2015-10-25T03:11:25Z",
        "request_User-Agent": AGENT,
        "request_Referer": "https://site.example/",
        "request_X-Api-Key": "k-1",
        "level": "info",
        "msg": "",
        "time": "2015-10-25T03:11:26Z",
    }
)
ALB = (
    "h2 2015-10-25T03:11:25.017000Z app/front/50dc6c495c0c9188 198.51.100.7:48160 10.0.0.66:9000 0.000 0.017 0.000 404 404 "
    f'5 512 "GET https://www.site.example:443/items/1?q=x%20y HTTP/2.0" "{AGENT}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 '
    'arn:aws:elasticloadbalancing:us-east-2:1:targetgroup/t/7 "Root=1-58337327-72bd00b0343d75b906739c42" '
    '"www.site.example" "arn:aws:acm:us-east-2:1:certificate/1" 1 2015-10-25T03:11:25.000000Z "forward" "-" "-" '
    '"10.0.0.66:9000" "404" "-" "-" TID_1234\n'
)
HEADER = "time,ip,user,user_agent,method,path,status,referer,host,api_key,duration_ms,bytes"
ROW = f'2015-10-25 03:11:25Z,198.51.100.7,bob,"{AGENT}",GET,/items/1?q=x%20y,404,https://site.example/,www.site.example,k-1,17,512'
CSV = f"{HEADER}\n{ROW}\n"
TSV = CSV.replace(",", "\t")
SEMICOLONS = CSV.replace(AGENT, AGENT.replace(";", "")).replace(",", ";")

TEXTS = {
    "common": COMMON,
    "combined": COMBINED,
    "vhost": VHOST,
    "traefik": TRAEFIK,
    "nginx-json": NGINX + "\n",
    "caddy-json": CADDY + "\n",
    "traefik-json": TRAEFIK_JSON + "\n",
    "alb": ALB,
    "csv": CSV,
    "tsv": TSV,
}

WHOLE = {
    "time": AT,
    "address": "198.51.100.7",
    "user": "bob",
    "agent": AGENT,
    "method": "GET",
    "path": "/items/1",
    "status": 404,
    "referer": "https://site.example/",
    "host": "www.site.example",
    "api_key": "k-1",
    "duration": 17_000_000,
    "bytes": 512,
}
LACKS = {
    "common": {"agent", "referer", "host", "api_key", "duration"},
    "combined": {"host", "api_key", "duration"},
    "vhost": {"api_key", "duration"},
    "traefik": {"host", "api_key"},
    "alb": {"user", "referer", "api_key"},
}
"""What each format cannot say."""


def read(
    log: bytes | str,
    fields: Collection[str] = FIELDS,
    *,
    form: str | None = None,
    columns: dict[str, str] | None = None,
) -> list[Block]:
    """The blocks of one log from the standard input."""
    stream = io.BytesIO(log.encode() if isinstance(log, str) else log)
    with Source("-", stream) as source:
        return list(read_source(source, fields, form, columns))


def requests(blocks: list[Block]) -> list[dict[str, object]]:
    """The requests of blocks, one dictionary each."""
    return [
        {name: column[row] for name, column in block.columns.items()} for block in blocks for row in range(len(block))
    ]


def problems(blocks: list[Block]) -> list[tuple[int, str]]:
    """The lines that could not be read."""
    return [(fault.number, fault.problem) for block in blocks for fault in block.faults]


def lines(blocks: list[Block]) -> int:
    """How many lines there were."""
    return sum(block.lines for block in blocks)


def written(folder: Path, logs: dict[str, bytes]) -> list[str]:
    """The names of files with these contents."""
    for name, log in logs.items():
        (folder / name).write_bytes(log)
    return [str(folder / name) for name in logs]
