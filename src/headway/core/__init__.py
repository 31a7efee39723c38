"""Pure decision arithmetic on integers: no clock, lock, randomness, logging or I/O."""
