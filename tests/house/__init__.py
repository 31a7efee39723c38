"""The project itself: its layers, its modules, its files."""
