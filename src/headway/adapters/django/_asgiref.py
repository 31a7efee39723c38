"""What the adapter needs of asgiref, which comes with Django."""

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction

__all__ = ["async_to_sync", "iscoroutinefunction", "markcoroutinefunction"]
