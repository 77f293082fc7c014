"""Reads the small files of ``/proc``, ``/sys`` and memory: once a second and more, so without Path and text layer."""

import os


def kernel_text(path: str) -> str:
    """The whole file; empty if it cannot be read."""
    return kernel_bytes(path).decode("utf-8", "replace")


def kernel_bytes(path: str) -> bytes:
    """The whole file; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
