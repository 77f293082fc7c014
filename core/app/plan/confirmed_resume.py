"""Ways to resume that a person has confirmed: one empty file each in ``<home>/confirmed``, so that it is asked once."""

import contextlib
from hashlib import sha256
from pathlib import Path

from ...model.run import RunSpec
from ...store.home import make_private
from ..runs.known_runs import home


def must_be_confirmed(spec: RunSpec) -> bool:
    """Whether the way is a conclusion from the trainer's source that nobody has confirmed."""
    way = spec.resume_way
    return way is not None and way.source == "script" and way.is_unproven and not _path(spec).exists()


def remember_confirmed(spec: RunSpec) -> None:
    """Keep the answer yes. If it cannot be kept, it is asked again."""
    with contextlib.suppress(OSError):
        make_private(_path(spec).parent)
        _path(spec).touch(mode=0o600)


def _path(spec: RunSpec) -> Path:
    way = spec.resume_way
    said = () if way is None else (way.how, way.place.rpartition(":")[0])
    words = "\0".join((spec.cwd, *spec.command, *said)).encode("utf-8", "surrogatepass")
    return home() / "confirmed" / sha256(words).hexdigest()[:16]
