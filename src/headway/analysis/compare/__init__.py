"""Algorithms beside each other on one pattern of arrivals."""
