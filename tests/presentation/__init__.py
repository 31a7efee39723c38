"""Tests of presentation."""
