"""Imported by each Python of a row (PYTHONPATH): counts the steps of the optimizer and makes one fault, once.

No file of the framework or of the script is changed. GALLERY_LEDGER is the folder of the counts (one file for each
process that trains, ``BEGUN_NS-PID-RANK``, a line ``TIME`` for each step), GALLERY_FAULT ``KIND:STEP:RANK``,
GALLERY_HOOK what counts as a step (empty: nothing does, and the signals USR1 and USR2 make NaN and a deadlock), GALLERY_STEP_S how long a step takes at least, GALLERY_TORN the pattern of files of
which the newest is cut in half, GALLERY_STAND_IN a module that replaces what cannot be had here (a GPU, real weights).
"""

import importlib.abc
import importlib.util
import os
import sys

LEDGER = os.environ.get("GALLERY_LEDGER", "")
HOOK = os.environ.get("GALLERY_HOOK", "torch.optim")


class Steps:
    """The steps of this process."""

    def __init__(self):
        self.count = 0
        self.pid = 0
        self.file = None

    def before(self):
        if os.getpid() != self.pid:  # the first step of this process, or of one that was forked
            import time

            self.count, self.pid = 0, os.getpid()
            name = f"{time.time_ns()}-{self.pid}-{os.environ.get('RANK') or 0}"
            self.file = open(os.path.join(LEDGER, name), "a", buffering=1)
        fault(self.count)

    def after(self):
        import time

        self.count += 1
        self.file.write(f"{time.time()}\n")
        time.sleep(float(os.environ.get("GALLERY_STEP_S", "0")))


STEPS = Steps()


def fault(count):
    """Make the fault if this process has taken as many steps as it names, and nobody has made it yet."""
    kind, _, rest = os.environ.get("GALLERY_FAULT", "").partition(":")
    if not kind:
        return
    step, rank = map(int, rest.split(":"))
    if count != step or int(os.environ.get("RANK") or 0) != rank:
        return
    import time

    try:
        with open(os.path.join(LEDGER, "fault"), "x") as mark:
            mark.write(f"{time.time()}\n")
    except FileExistsError:
        return
    FAULTS[kind]()


def kill(pid=None):
    import signal

    os.kill(pid or os.getpid(), signal.SIGKILL)
    import time

    time.sleep(3600)


def kill_launcher():
    kill(os.getsid(0))


def kill_worker():
    import signal
    from pathlib import Path

    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    workers = [pid for pid in children if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    with open(os.path.join(LEDGER, "fault"), "a") as mark:
        mark.write(f"workers {workers}\n")
    if workers:
        os.kill(int(workers[-1]), signal.SIGKILL)


def deadlock():
    import signal
    import threading

    lock = threading.Lock()

    def handler(*_):
        lock.acquire()
        lock.acquire()

    signal.signal(signal.SIGUSR2, handler)
    if HOOK:
        os.kill(os.getpid(), signal.SIGUSR2)


def nan():
    """At SIGUSR1 the script's data, its array ``X``, becomes NaN in place."""
    import signal

    signal.signal(signal.SIGUSR1, lambda *_: sys.modules["__main__"].X.fill(float("nan")))


def stop():
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)


def exit_three():
    os._exit(3)


def oom():
    import torch

    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.99 GiB of which 1.21 GiB is "
        "free. Including non-PyTorch memory, this process has 14.70 GiB memory in use. Of the allocated memory 13.90 "
        "GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
    )


def torn():
    import glob

    newest = max(glob.glob(os.environ["GALLERY_TORN"], recursive=True), key=os.path.getmtime)
    os.truncate(newest, os.path.getsize(newest) // 2)
    with open(os.path.join(LEDGER, "fault"), "a") as mark:
        mark.write(f"cut {newest}\n")
    kill()


FAULTS = {
    "kill": kill, "kill_launcher": kill_launcher, "kill_worker": kill_worker, "deadlock": deadlock, "stop": stop,
    "exit": exit_three, "oom": oom, "torn": torn,
}  # fmt: skip


def watch_torch(module):
    module.register_optimizer_step_pre_hook(lambda *_: STEPS.before())
    module.register_optimizer_step_post_hook(lambda *_: STEPS.after())


def watch_method(module):
    *owners, method = HOOK.partition(":")[2].split(".")
    owner = module
    for name in owners:
        owner = getattr(owner, name)
    original = getattr(owner, method)

    def counted(*args, **kwargs):
        STEPS.before()
        result = original(*args, **kwargs)
        STEPS.after()
        return result

    setattr(owner, method, counted)


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once a module has been imported."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def execute_and_watch(module):
                execute(module)
                self.then(module)

            spec.loader.exec_module = execute_and_watch
        return spec


CACHE = os.path.join("trainwatch", "frameworks")  # where the interpreters and the checkouts are by default
if LEDGER and "trainwatch" not in " ".join(sys.orig_argv[:4]).replace(CACHE, ""):
    if HOOK == "torch.optim":
        sys.meta_path.insert(0, AfterImport("torch.optim.optimizer", watch_torch))
    elif not HOOK:
        deadlock()
        nan()
    else:
        sys.meta_path.insert(0, AfterImport(HOOK.partition(":")[0], watch_method))
    if os.environ.get("GALLERY_STAND_IN"):
        importlib.import_module(os.environ["GALLERY_STAND_IN"])
