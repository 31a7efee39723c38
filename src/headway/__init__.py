"""headway: rate limiting for both sides of a refusal."""
