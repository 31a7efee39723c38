"""Suggest: what clients really send, who they are, and limits that fit them, each checked on the traffic it comes from."""
