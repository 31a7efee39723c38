"""Limiter, AsyncLimiter and the decision they give."""
