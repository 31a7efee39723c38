"""Which limits a request must pass: conditions, tiers, bans, exemptions, the caller's address, and the policy file."""
