"""``headway suggest`` on generated logs, one ten times as long as the other with the same clients: lines/s and memory.

``uv run python -m benchmarks.suggest [LINES]`` writes both into a temporary folder, runs the command on each as a process of
its own and prints what that took. Memory is the process's peak, by ``getrusage``.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLIENTS = 20_000
DAYS = 7


def write_log(path: Path, lines: int, seed: int = 7) -> None:
    """A week of a website and its API: people, an office, a crawler, a scanner and one greedy client."""
    chance = random.Random(seed)
    agents = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0" for n in range(60, 140)]
    crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    paths = ["/", "/items/%d", "/items/%d/reviews", "/search?q=%d", "/static/app.js", "/login"]
    months = ("Oct", "Nov")
    with path.open("w", encoding="ascii", buffering=1 << 20) as log:
        batch = []
        for number in range(lines):
            second = number * DAYS * 86_400 // lines
            day = second // 86_400
            stamp = f"{26 + day if day < 6 else day - 5:02d}/{months[day >= 6]}/2026:{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d} +0000"
            which = chance.random()
            client = int(chance.paretovariate(0.6)) % CLIENTS
            agent = agents[client % 80]
            address = f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}"
            target = chance.choice(paths)
            status = 200
            if which < 0.02:
                address, agent = "203.0.113.50", chance.choice(agents)
            elif which < 0.05:
                address, agent = "198.51.100.1", crawler
            elif which < 0.06:
                address, target, status = (
                    "198.51.100.66",
                    chance.choice(("/wp-login.php", "/.env", "/.git/config")),
                    404,
                )
            elif which < 0.16:
                address, agent, target = "192.0.2.99", agents[0], "/items/%d"
            target = target % chance.randrange(10_000) if "%d" in target else target
            batch.append(
                f'{address} - - [{stamp}] "GET {target} HTTP/1.1" {status} 5120 "https://site.example/" "{agent}"\n'
            )
            if len(batch) == 10_000:
                log.writelines(batch)
                batch.clear()
        log.writelines(batch)


def run(path: Path) -> tuple[float, float, int]:
    """Seconds, seconds of CPU, and peak MiB of the command on a log."""
    before, spent = time.perf_counter(), cpu()
    script = (
        "import resource, sys; from headway.cli import main; main(['suggest', sys.argv[1], '--json']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    return time.perf_counter() - before, cpu() - spent, int(ran.stderr.split()[-1]) // 1024


def cpu() -> float:
    """Seconds of CPU of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print both rows."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'lines':>12} {'log MiB':>8} {'seconds':>8} {'CPU s':>8} {'lines/CPU s':>12} {'peak MiB':>9}")
        for lines in (most // 10, most):
            path = Path(folder) / f"{lines}.log"
            write_log(path, lines)
            seconds, spent, peak = run(path)
            print(
                f"{lines:>12,} {path.stat().st_size >> 20:>8} {seconds:>8.1f} {spent:>8.1f} {lines / spent:>12,.0f} {peak:>9}"
            )


if __name__ == "__main__":
    main()
