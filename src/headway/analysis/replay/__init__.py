"""What a limit, or a policy beside another, would have refused of a log; a limit alone is ``replay_log``."""

from headway.analysis.replay.one_limit import FIELDS, DeniedKey, Replay, UnparsedLine, check_fields, replay_log

__all__ = ["FIELDS", "DeniedKey", "Replay", "UnparsedLine", "check_fields", "replay_log"]
