"""How figures are drawn: in a terminal, as a PNG or SVG file, and as one page of HTML."""
