"""What logs, quotas and other people's refusals say: explain, replay, suggest, compare, lint, convert.

Nothing here asks what time it is or opens a connection: time comes from the log, and a refusal is handed in. Two places
touch files: ``logs`` reads them, and ``suggest`` sorts in a temporary folder that goes with it. Whoever calls prints.
"""
