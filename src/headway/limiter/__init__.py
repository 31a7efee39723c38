"""limiter."""
