"""Batches made by worker processes, in order, as a data loader of a large framework does it."""

import multiprocessing
import os
import queue
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
_AHEAD = 2
"""Batches asked for in advance, per worker."""


def _work(make: Callable[[int], Batch], asked: Any, done: Any, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ends with its parent, which has to save first
    while os.getppid() == parent:
        try:
            step = asked.get(timeout=0.5)
        except queue.Empty:
            continue
        if step is None:
            return
        while step < 0:  # told to stop delivering
            time.sleep(0.5)
            if os.getppid() != parent:
                return
        done.put((step, make(step)))


class Loader:
    """``take(step)`` gives the batch of a step; which process made it does not matter to its content."""

    def __init__(self, make: Callable[[int], Batch], workers: int, first: int, last: int) -> None:
        context = multiprocessing.get_context("fork")
        self._asked = [context.Queue() for _ in range(workers)]
        self._done = context.Queue()
        self._ready: dict[int, Batch] = {}
        self._next, self._last = first, last
        self._processes = [
            context.Process(target=_work, args=(make, asked, self._done, os.getpid()), name=f"loader-{n}")
            for n, asked in enumerate(self._asked)
        ]
        for process in self._processes:
            process.start()
        for _ in range(workers * _AHEAD):
            self._ask()

    def take(self, step: int) -> Batch:
        """The batch of a step. Raises RuntimeError when a worker died."""
        while step not in self._ready:
            try:
                number, batch = self._done.get(timeout=0.2)
            except queue.Empty:
                self._look_for_the_dead()
                continue
            self._ready[number] = batch
        self._look_for_the_dead()
        self._ask()
        return self._ready.pop(step)

    def kill_one(self) -> None:
        """Kill the first worker, as the kernel does when memory runs out."""
        pid = self._processes[0].pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._processes[0].join()

    def stop_delivering(self) -> None:
        """Let every worker get stuck; what they made already is thrown away."""
        for asked in self._asked:
            for _ in range(_AHEAD):
                try:
                    asked.get_nowait()
                except queue.Empty:
                    break
            asked.put(-1)
        self._next = self._last + 1
        self._ready.clear()
        time.sleep(0.1)
        while True:
            try:
                self._done.get(timeout=0.1)
            except queue.Empty:
                return

    def close(self) -> None:
        """Tell the workers to end and wait half a second for each."""
        for asked in self._asked:
            asked.put(None)
        for process in self._processes:
            process.join(timeout=0.5)
            if process.is_alive():
                process.kill()
                process.join()
        for channel in (*self._asked, self._done):
            channel.cancel_join_thread()
            channel.close()

    def _ask(self) -> None:
        if self._next <= self._last:
            self._asked[self._next % len(self._asked)].put(self._next)
            self._next += 1

    def _look_for_the_dead(self) -> None:
        for process in self._processes:
            if process.exitcode is not None:
                raise RuntimeError(f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly")
