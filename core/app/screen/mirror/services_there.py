"""What another machine's screen may ask of this one, by the names that ``far_services.py`` uses."""

import re
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ....model.observation import Command
from ....model.remote.messages import Call, CardsNow
from ....model.text.log_lines import LogLine, LogStretch
from ....sense.log.log_browser import FileLogBrowser
from ....store.detail_files import DetailReader
from ....store.log_index import FILE_NAME as LOG_INDEX
from ....store.log_index import LogIndex
from ...runs.known_runs import open_run
from ..run_cards import run_cards
from ..run_causes import RunCauses
from ..run_checkpoints import RunCheckpoints
from ..run_profiles import RunProfiles
from ..run_ranks import RunRanks
from ..run_services import AttemptStamps, IncidentFolder, RunLaunch, RunSamples
from ..run_settings import settings_of
from ..store_feed import StoreFeed
from ..supervisors import DetachedStarter
from .far_logs import TimedStretch
from .trials_there import trials_there

Values = dict[str, Any]
SAMPLE_BYTES = 256 << 10
"""Of a picture for one question: a slow line has room for the rest between two of them."""
TALLY_BLOCKS = 64
"""Blocks of a log that are counted for one answer."""


def answer_call(call: Call) -> Any:
    """What the call asks for. Raises an exception with a sentence."""
    if call.what not in ANSWERS:
        raise RuntimeError(f"this version of trainwatch does not know {call.what!r}: upgrade it there")
    return ANSWERS[call.what](call.run, call.values)


def _cards(_run: str, _values: Values) -> CardsNow:
    return CardsNow(cards=tuple(run_cards()), wall=time.time())


def _send(run: str, values: Values) -> Any:
    directory, spec = open_run(run)
    return StoreFeed(directory, spec.created_wall).send(msgspec.convert(values["command"], Command))


def _start(run: str, values: Values) -> None:
    then = values.get("then")
    DetachedStarter().start(run, None if then is None else msgspec.convert(then, Command))


def _log(_run: str, values: Values) -> Any:
    """One method of the log browser."""
    path = str(values["path"])
    browser = FileLogBrowser()
    pattern = _pattern(values.get("pattern"))
    match values["method"]:
        case "size":
            return browser.size(path)
        case "before" | "after" as which:
            read = browser.before if which == "before" else browser.after
            stretch = read(path, values["offset"], values["lines"], pattern)
            return _timed(path, stretch) if values.get("times") else stretch
        case "states":
            return browser.states(path, msgspec.convert(values["line"], LogLine), values["most"])
        case "find" if pattern is not None:
            return browser.find(path, pattern, values["offset"], backwards=values["backwards"], stopped=_never)
        case "tally" if pattern is not None:
            found = browser.tally(path, pattern, values["begin"], values["end"], _never)
            return next(reversed(list(islice(found, TALLY_BLOCKS))), None)
        case "line_at":
            return browser.line_at(path, values["number"], _never)
        case other:
            raise RuntimeError(f"this version of trainwatch does not know {other!r}: upgrade it there")


def _timed(path: str, stretch: LogStretch) -> TimedStretch:
    """With the time of each line, as far as it was watched."""
    index = LogIndex(Path(path).with_name(LOG_INDEX))
    return stretch, tuple(index.time_of(line.offset) for line in stretch.lines)


def _log_offset(run: str, values: Values) -> int | None:
    return AttemptStamps(open_run(run)[0]).offset_at(values["attempt"], values["t"])


def _pattern(told: tuple[str, int] | None) -> re.Pattern[str] | None:
    return None if told is None else re.compile(told[0], told[1])


def _never() -> bool:
    return False


def _incident_files(run: str, values: Values) -> Any:
    return IncidentFolder(open_run(run)[0]).files(values["incident"])


def _profiles(run: str, _values: Values) -> Any:
    return list(RunProfiles(open_run(run)[1]))


def _settings(run: str, _values: Values) -> Any:
    return settings_of(*open_run(run))


def _details(run: str, _values: Values) -> Any:
    return DetailReader(open_run(run)[0].path).look()


def _launch(run: str, values: Values) -> Any:
    launch = RunLaunch(open_run(run)[1])
    profiles = {profile.name: profile for profile in RunProfiles(open_run(run)[1])}
    profile = profiles.get(values["profile"]) if values["profile"] is not None else None
    if values["method"] == "values":
        return {key: _plain(value) for key, value in launch.values(profile, values["keys"]).items()}
    return launch.changes(profile)


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)


def _checkpoints(run: str, values: Values) -> Any:
    directory, spec = open_run(run)
    jobs = RunCheckpoints(spec, directory.load_spec)
    match values["method"]:
        case "listing":
            return jobs.listing()
        case "verify":
            return jobs.verify(values["path"], deep=values["deep"], progress=_unseen)
        case "show":
            return jobs.show(values["path"])
        case "compare":
            return jobs.compare(values["a"], values["b"], progress=_unseen)
        case other:
            raise RuntimeError(f"{other} works on the machine itself: trainwatch --on HOST checkpoints {other} …")


def _ranks(run: str, _values: Values) -> Any:
    return RunRanks(open_run(run)[0]).look()


def _causes(run: str, values: Values) -> Any:
    causes = RunCauses(open_run(run)[0])
    return causes.teach(values["attempt"], values["failure"]) if values["method"] == "teach" else causes.classes()


def _samples(run: str, _values: Values) -> Any:
    directory, spec = open_run(run)
    return list(RunSamples(spec, directory.load_spec).newest())


def _sample(run: str, values: Values) -> bytes:
    """A piece of one of the run's pictures."""
    if values["path"] not in {sample.path for sample in _samples(run, {})}:
        raise RuntimeError("the picture is not among those of the run any more")
    with Path(values["path"]).open("rb") as file:
        file.seek(values["offset"])
        return file.read(SAMPLE_BYTES)


def _unseen(_done: int, _total: int) -> None:
    """Progress does not go over the line."""


ANSWERS: dict[str, Callable[[str, Values], Any]] = {
    "cards": _cards,
    "send": _send,
    "start": _start,
    "log": _log,
    "log offset": _log_offset,
    "incident files": _incident_files,
    "profiles": _profiles,
    "settings": _settings,
    "details": _details,
    "launch": _launch,
    "checkpoints": _checkpoints,
    "ranks": _ranks,
    "causes": _causes,
    "samples": _samples,
    "sample": _sample,
    "trials": trials_there,
}
"""What may be asked → who answers. Nothing else is done for another machine."""
