"""Readers of access logs (``analysis/logs/``; ``tests/analysis/logs.py`` makes some)."""
