"""How state is advanced, atomically, on the store's own clock."""
