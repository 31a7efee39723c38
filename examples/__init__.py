"""Whole, small applications that use headway; each has a README that says how to run it."""
