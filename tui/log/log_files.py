"""The files of a run that the log screen shows, and the marks on their tabs."""

from collections.abc import Sequence
from pathlib import PurePath

from ...core.model.story import RunStory
from ...core.model.text.log_lines import LogFile


def log_files(story: RunStory, extra: Sequence[str]) -> tuple[LogFile, ...]:
    """Logs of all attempts, oldest first, then the run's others. A file that several attempts share is listed once."""
    by_path: dict[str, LogFile] = {}
    for attempt in story.attempts:
        if attempt.log is not None:
            by_path.pop(attempt.log, None)
            by_path[attempt.log] = LogFile(path=attempt.log, label=f"attempt {attempt.number}", attempt=attempt.number)
    for path in extra:
        by_path.setdefault(path, LogFile(path=path, label=PurePath(path).name))
    return tuple(by_path.values())


def mark_of(file: LogFile, story: RunStory) -> str:
    """How an attempt ended, as the name of a mark in Glyphs; empty for a running attempt and for other files."""
    attempt = next((a for a in story.attempts if a.number == file.attempt), None)
    if attempt is None or attempt.ended_t is None:
        return ""
    kinds = {i.kind for i in story.incidents if i.attempt == attempt.number}
    if "hang" in kinds:
        return "hang"
    return "crash" if attempt.how == "crashed" or "crash" in kinds else ""
