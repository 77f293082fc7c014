"""Reads the small files of ``/proc`` and ``/sys``: once a second and more, so without Path and text layer."""

import os


def kernel_text(path: str) -> str:
    """The whole file; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
