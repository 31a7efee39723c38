"""Readers of access logs (``analysis/logs/``; ``made_logs.py`` makes some)."""
