"""An API whose plans and overrides are rows of its own database, changed while it runs."""
