"""Suggestions from logs of known truth."""
