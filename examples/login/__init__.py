"""A login that guesses cannot get through and that strangers cannot lock."""
