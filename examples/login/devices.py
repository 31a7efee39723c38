"""Known devices: a cookie that only a successful login gives, for one account (OWASP: device cookies)."""

from __future__ import annotations

import hmac
import secrets

COOKIE = "device"
LASTS_SECONDS = 180 * 86_400


def give(account: str, secret_key: bytes) -> str:
    """A new device's cookie for an account."""
    device = secrets.token_hex(16)
    return f"{device}.{_signed(account, device, secret_key)}"


def recognise(cookie: str | None, account: str, secret_key: bytes) -> str | None:
    """The device, if this account has logged in from it; None for a cookie of another account, or a made-up one."""
    device, _, signature = (cookie or "").partition(".")
    right = _signed(account, device, secret_key)
    return device if device and hmac.compare_digest(signature.encode(), right.encode()) else None


def _signed(account: str, device: str, secret_key: bytes) -> str:
    return hmac.new(secret_key, f"device\x1f{account}\x1f{device}".encode(), "sha256").hexdigest()
