"""Optional: let a training say its step, phase and loss itself, and be asked for a checkpoint. One file, to be copied.

    import trainbeat                       # beside the script, where `trainwatch init --trainbeat` writes it

    for step in range(first, total):
        loss = train_one_step()
        wanted = trainbeat.step(step, loss=loss, total=total)
        if wanted.save:
            save_checkpoint(step)
        if wanted.stop:
            break

Nothing is needed of the training: without trainwatch every call does nothing. A call writes some numbers into a page
of memory that the supervisor reads (``/dev/shm``); it takes about 2 us, waits for nothing, and raises nothing. If
something here fails, it is switched off for the rest of the run.

Several processes (torchrun, accelerate): the first one tells its step, and all of one machine are asked to save at the
same step. A tensor on a GPU is not read, because that would wait for the GPU: pass ``loss.item()`` where you have it
anyway, for example when you log.

Standard library only; Python 3.8 or later. Licence: MIT, as trainwatch.
"""
# A copy of this file must run alone, with older Pythons: no other module of trainwatch, no newer syntax.
# ruff: noqa: ARG002, UP031, S108, PTH112, PTH110, PTH118, UP006, UP035, UP045, PLW0603

import faulthandler
import math
import mmap
import os
import signal
import struct
import time
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

__all__ = ["Request", "callback_for", "phase", "step"]

ATTEMPT = "TRAINWATCH_ATTEMPT"
"""The variable that trainwatch sets for a training: the folder of this attempt."""
MAGIC = b"TWBEAT1\0"
SIZE = 4096
HEAD = struct.Struct("<8sQqqqdd16sq")
"""magic, counter (odd while it is written), pid, step, total, loss, monotonic seconds, phase, signal for a dump."""
ASKED, ASKED_STOP, ANSWERED, AT_STEP, AT_REQUEST = 256, 264, 272, 280, 288
"""Places of signed 64-bit numbers: requests so far, the newest with a stop, answered, step and number agreed."""
NUMBER = struct.Struct("<q")
AHEAD = 3
"""Steps after which several processes save together: none of them is further ahead of the first one."""
DUMP = "heartbeat-stacks.txt"
PHASES = ("load", "preprocess", "compile", "train", "eval", "sample", "save", "finish")
ROOM = "/dev/shm"


class Request(NamedTuple):
    """What trainwatch asks for. It counts as true if a checkpoint is to be saved."""

    save: bool = False
    stop: bool = False

    def __bool__(self) -> bool:
        return self.save


NOTHING = Request()


class Page:
    """The page of memory of one attempt, for both sides. ``make``: the training makes it.

    Raises OSError, ValueError.
    """

    def __init__(self, path: str, make: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags | os.O_CREAT if make else flags, 0o600)
        try:
            found = os.fstat(handle)
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise ValueError("not a page of this user")
            if make and found.st_size != SIZE:
                os.write(handle, bytes(SIZE))  # takes its memory now: a full /dev/shm fails here, not in the training
            elif found.st_size != SIZE:
                raise ValueError("not a page")
            self.map = mmap.mmap(handle, SIZE)
        finally:
            os.close(handle)

    def number(self, place: int) -> int:
        """The unsigned integer at this offset of the page (a request, or the answer to one)."""
        return int(NUMBER.unpack_from(self.map, place)[0])

    def put(self, place: int, value: int) -> None:
        NUMBER.pack_into(self.map, place, value)

    def read(self) -> "Optional[Dict[str, Any]]":
        """What the training told last; None if it has told nothing, or is just writing."""
        magic, count, pid, at, total, loss, when, padded, dump = HEAD.unpack_from(self.map, 0)
        name = padded.rstrip(b"\0")
        if magic != MAGIC or count % 2 or NUMBER.unpack_from(self.map, 8)[0] != count:
            return None
        return {
            "pid": pid,
            "step": at if at >= 0 else None,
            "total": total if total > 0 else None,
            "loss": None if math.isnan(loss) and not name.endswith(b"\1") else loss,
            "at": when,
            "phase": name.rstrip(b"\1").decode("ascii", "replace"),
            "dump_signal": dump,
            "count": count,
        }

    def ask(self, stop: bool = False) -> int:
        """Ask for a checkpoint, and for the end after it. Returns the number of the request."""
        number = self.number(ASKED) + 1
        if stop:
            self.put(ASKED_STOP, number)
        self.put(ASKED, number)
        return number


def page_path(attempt: str, sha256: Any = None) -> str:
    """The page of an attempt: in memory, else in the attempt's folder. ``sha256``: one that is loaded already."""
    if sha256 is None:
        from hashlib import sha256
    name = "trainwatch-%d-beat-%s" % (os.geteuid(), sha256(os.fsencode(attempt)).hexdigest()[:20])
    return os.path.join(ROOM, name) if os.access(ROOM, os.W_OK) else os.path.join(attempt, "heartbeat.page")


class _Beat:
    """One process of a training."""

    def __init__(self, attempt: str) -> None:
        self.rank, self.world = _rank()
        self.page: Optional[Page] = None
        self.path = page_path(attempt)
        self.pid = os.getpid()
        self.count = 0
        self.last = -1
        self.total = -1
        self.loss: Tuple[float, bool] = (math.nan, False)
        self.name = "train"
        self.handled = 0
        self.dump = 0
        if self.rank == 0:
            self.page = Page(self.path, make=True)
            self.handled = self.page.number(ASKED)
            self.dump = self._register(attempt)

    def _register(self, attempt: str) -> int:
        """Write the stacks of all threads on a signal. 0 if that is not possible here."""
        try:
            number = signal.SIGRTMAX - 4
            if signal.getsignal(number) is not signal.SIG_DFL:
                return 0
            # Never closed: a signal may come at any time, and its number could be another file's then.
            handle = os.open(os.path.join(attempt, DUMP), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            faulthandler.register(number, file=handle, all_threads=True)
        except (OSError, ValueError, RuntimeError, AttributeError):
            return 0
        return int(number)

    def write(self) -> None:
        page = self.page
        if page is None or self.rank != 0 or os.getpid() != self.pid:  # a loader worker that was forked
            return
        loss, is_nan = self.loss
        name = self.name.encode("ascii", "replace")[:14] + (b"\1" if is_nan else b"")
        values = (self.pid, self.last, self.total, loss, time.monotonic(), name, self.dump)
        HEAD.pack_into(page.map, 0, MAGIC, self.count + 1, *values)
        self.count += 2
        NUMBER.pack_into(page.map, 8, self.count)

    def request(self, at: int) -> Request:
        if os.getpid() != self.pid:
            return NOTHING
        if self.page is None:
            if at % 50 or not os.path.exists(self.path):
                return NOTHING
            self.page = Page(self.path)
            self.handled = self.page.number(ANSWERED)
        page = self.page
        asked = page.number(ASKED)
        if asked <= self.handled:
            return NOTHING
        if self.world > 1:
            if self.rank == 0 and page.number(AT_REQUEST) != asked:
                page.put(AT_STEP, at + AHEAD)
                page.put(AT_REQUEST, asked)
            if page.number(AT_REQUEST) != asked or at < page.number(AT_STEP):
                return NOTHING
        self.handled = asked
        if self.rank == 0:
            page.put(ANSWERED, asked)
        return Request(True, page.number(ASKED_STOP) == asked)


_beat: "Optional[_Beat]" = None
_off = False


def _current() -> "Optional[_Beat]":
    global _beat, _off
    if _beat is None and not _off:
        attempt = os.environ.get(ATTEMPT)
        if not attempt or not os.path.isdir(attempt):
            _off = True
            return None
        _beat = _Beat(attempt)
    return _beat


def _switch_off() -> None:
    global _beat, _off
    _beat, _off = None, True


def step(number: int, loss: Any = None, total: "Optional[int]" = None) -> Request:
    """Tell that the training has made this step. ``total``: steps of the whole training.

    Returns what is asked for: ``.save`` (save a checkpoint now), ``.stop`` (end after it).
    """
    if _off:
        return NOTHING
    try:
        beat = _current()
        if beat is None:
            return NOTHING
        beat.last = int(number)
        if total is not None:
            beat.total = int(total)
        value = _number(loss)
        if value is not None:
            beat.loss = (value, math.isnan(value))
        beat.name = "train"
        beat.write()
        return beat.request(beat.last)
    except Exception:
        _switch_off()
        return NOTHING


def phase(name: str) -> None:
    """Tell that it does something else now: "eval", "save", "sample" … The next ``step`` is training again."""
    if _off:
        return
    try:
        beat = _current()
        if beat is not None:
            beat.name = str(name)
            beat.write()
    except Exception:
        _switch_off()


def _rank() -> "Tuple[int, int]":
    for rank, world in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        try:
            if rank in os.environ:
                return int(os.environ[rank]), int(os.environ.get(world, "1"))
        except ValueError:
            continue
    return 0, 1


def _number(value: Any) -> "Optional[float]":
    """A number that can be read without waiting; None for a tensor on a device."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    device = getattr(value, "device", None)
    if device is not None and str(device) != "cpu":
        return None
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except Exception:
        return None


def callback_for(framework: str) -> Any:
    """A callback object that calls ``step`` and ``phase``: "transformers" (HF Trainer, TRL) or "lightning".

    The framework must be installed. Raises ImportError, ValueError; call it before the training starts.
    """
    if framework in {"transformers", "trl"}:
        return _transformers()
    if framework in {"lightning", "pytorch_lightning"}:
        return _lightning()
    raise ValueError('framework must be "transformers" or "lightning"')


def _transformers() -> Any:
    from transformers import TrainerCallback  # type: ignore[import-not-found]

    class Heartbeat(TrainerCallback):  # type: ignore[misc]
        """Tells trainwatch the step, loss and phase of a Trainer, and saves or ends when it is asked."""

        def __init__(self) -> None:
            self.loss: Any = None

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            self.loss = (logs or {}).get("loss", self.loss)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            wanted = step(state.global_step, loss=self.loss, total=state.max_steps)
            control.should_save = control.should_save or wanted.save
            control.should_training_stop = control.should_training_stop or wanted.stop
            if control.should_save:
                phase("save")
            return control

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            phase("train")

        def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            phase("eval")

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            phase("train")

    return Heartbeat()


def _lightning() -> Any:
    try:
        from lightning.pytorch import Callback  # type: ignore[import-not-found]
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[import-not-found]

    class Heartbeat(Callback):  # type: ignore[misc]
        """Tells trainwatch the step, loss and phase of a Lightning Trainer, and saves or ends when it is asked."""

        def __init__(self) -> None:
            self.total: Optional[int] = None
            self.last = -1
            self.losses: List[float] = []

        def on_train_start(self, trainer: Any, module: Any) -> None:
            self.total, self.last, self.losses = _lightning_total(trainer, module), trainer.global_step, []

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
            value = _number(outputs.get("loss") if isinstance(outputs, dict) else outputs)
            if value is not None:
                self.losses.append(value)
            if trainer.global_step == self.last:  # gradients are being accumulated
                return
            self.last = trainer.global_step
            wanted = step(self.last, loss=_lightning_loss(trainer, module, self.losses), total=self.total)
            self.losses = []
            if wanted.save and self._save(trainer) and wanted.stop:
                trainer.should_stop = True

        def _save(self, trainer: Any) -> bool:
            folder = getattr(trainer.checkpoint_callback, "dirpath", None) or trainer.default_root_dir
            phase("save")
            try:
                trainer.save_checkpoint(os.path.join(folder, "trainwatch-step=%d.ckpt" % trainer.global_step))
            except Exception as error:
                warnings.warn("the checkpoint that trainwatch asked for was not saved: %r" % error, stacklevel=2)
                return False
            finally:
                phase("train")
            return True

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            phase("eval")

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            phase("train")

    return Heartbeat()


def _lightning_total(trainer: Any, module: Any) -> "Optional[int]":
    """Steps of the whole training as ``global_step`` counts them; None where Lightning does not know them."""
    try:
        if getattr(module, "automatic_optimization", True):
            total = trainer.estimated_stepping_batches  # -1 or inf: not known
        else:  # each step of each optimizer counts, and only max_steps counts them, too
            total = trainer.max_steps if trainer.max_epochs in (None, -1) else -1
        return int(total) if 0 < total < math.inf else None
    except Exception:
        return None


def _lightning_loss(trainer: Any, module: Any, losses: "List[float]") -> "Optional[float]":
    """The mean loss of the batches of a step. Lightning divides each by the number of batches that it accumulates."""
    if not losses:
        return None
    divided = trainer.accumulate_grad_batches if getattr(module, "automatic_optimization", True) else 1
    return divided * sum(losses) / len(losses)
