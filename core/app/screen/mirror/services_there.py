"""What another machine's screen may ask of this one, by the names that ``far_services.py`` uses."""

import re
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from ....model.observation import Command
from ....model.remote.messages import Call, CardsNow
from ....model.text.log_lines import LogLine
from ....sense.log.log_browser import FileLogBrowser
from ....store.detail_files import DetailReader
from ...runs.known_runs import open_run
from ..run_cards import run_cards
from ..run_checkpoints import RunCheckpoints
from ..run_services import IncidentFolder, RunLaunch, RunProfiles
from ..run_settings import settings_of
from ..store_feed import StoreFeed
from ..supervisors import DetachedStarter

Values = dict[str, Any]
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
        case "before":
            return browser.before(path, values["offset"], values["lines"], pattern)
        case "after":
            return browser.after(path, values["offset"], values["lines"], pattern)
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


def _unseen(_done: int, _total: int) -> None:
    """Progress does not go over the line."""


ANSWERS: dict[str, Callable[[str, Values], Any]] = {
    "cards": _cards,
    "send": _send,
    "start": _start,
    "log": _log,
    "incident files": _incident_files,
    "profiles": _profiles,
    "settings": _settings,
    "details": _details,
    "launch": _launch,
    "checkpoints": _checkpoints,
}
"""What may be asked → who answers. Nothing else is done for another machine."""
