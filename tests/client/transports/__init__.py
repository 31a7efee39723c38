"""Transports against a real local server."""
