"""A budget of tokens a minute for a language model, whose cost is known only afterwards."""
