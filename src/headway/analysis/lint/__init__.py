"""Audits of refusals: how legible an API's refusals are, and what in them misleads a client. Pure over data."""
