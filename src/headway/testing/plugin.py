"""The pytest plugin: loaded by pytest itself wherever headway is installed."""
