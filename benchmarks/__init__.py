"""Benchmarks: figures beside floors and peers, interleaved in one run. They print and never fail.

Run: ``uv run --group bench python -m benchmarks core`` (or ``replay``, …); ``--json FILE`` keeps the figures.
"""
