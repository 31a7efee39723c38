"""How a decision is said: header fields, a problem document, a sentence, a whole response; and read back again.

Nothing here reads a clock, waits, logs or decides. It is the only place that rounds for people, and it rounds up.
"""
