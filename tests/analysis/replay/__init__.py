"""Replays of logs through limits and policies."""
