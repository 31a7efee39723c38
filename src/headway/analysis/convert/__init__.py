"""Other limiters' configuration as policy files, and what of it cannot be carried over exactly. Pure over text."""
