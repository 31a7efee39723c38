"""How long the tests may take: HEADWAY_TESTS_LONG=1 for the long variants (ten times the examples, two hundred kills)."""

from __future__ import annotations

import os

LONG = os.environ.get("HEADWAY_TESTS_LONG") == "1"
