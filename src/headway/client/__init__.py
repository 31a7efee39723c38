"""Budget before sending, read other people's refusals, wait as told."""

from headway.client.reading import read
from headway.client.rejection import Rejection, RejectionKind

__all__ = ["Rejection", "RejectionKind", "read"]
