"""Addresses of servers as messages show them."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown(url: str) -> str:
    """An address without user, password, query and fragment, which may hold keys."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
