"""Parses py-spy's dumps: frames of the main thread, and the frame that shows what the process is doing.

Standard library only: the stack probe imports this.
"""

import re

FRAMES = 24
"""A loader that waits for its workers does so six frames above ``_try_get_data``; a collective's native part is
deeper still."""
WAITING_PLACES = re.compile(
    r"\((?:.*/)?(?:threading|selectors|queue|socket|subprocess|ssl|popen_\w+|concurrent/futures/\w+|"
    r"multiprocessing/(?:connection|queues|synchronize|process|context|popen_\w+|util)|"
    r"asyncio/\w+)\.py:\d+\)"
    r"|\((?:(?:libc|libpthread|libffi|ld-linux)[.-][\w.+-]*|libpython[\w.]*|"
    r"(?:_ctypes|callproc|_threadmodule|thread_pthread)\.\w+)(?::\d+)?\)"
    r"|^0x|^ffi_call"
)
"""Frames that only wait. Their caller shows for what."""


def main_frames(text: str) -> tuple[str, ...]:
    """The innermost frames of the main thread (else the first) in a py-spy dump, innermost first."""
    threads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("Thread "):
            threads.append((line, []))
        elif threads and line.startswith("    ") and "(" in line:
            threads[-1][1].append(line.strip())
    chosen = next((frames for head, frames in threads if "MainThread" in head), threads[0][1] if threads else [])
    return tuple(chosen[:FRAMES])


def telling_frame(frames: tuple[str, ...]) -> str | None:
    """The innermost frame that does not only wait; None without frames."""
    return next((frame for frame in frames if not WAITING_PLACES.search(frame)), frames[0] if frames else None)
