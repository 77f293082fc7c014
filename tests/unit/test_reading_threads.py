"""GPUs are read in one thread while they answer; one that does not answer keeps its thread for itself."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from trainwatch.core.sense.gpu.reading_threads import CALM_ROUNDS, ReadingThreads

LIMIT_S = 0.2
LONG_S = 60.0
"""Time limit of rounds in which every GPU is awaited: they end before."""
SLOWER = (1.0, 4.0, 16.0)
"""A busy machine may not have run a thread within a short limit: the whole test is made again with longer ones."""


class Gpu:
    """Answers while ``answers`` is set. ``reads``: finished ones."""

    def __init__(self) -> None:
        self.fresh = False
        self.reads = 0
        self.answers = threading.Event()
        self.answers.set()
        self.thread = ""

    def read(self) -> None:
        self.thread = threading.current_thread().name + str(threading.get_ident())
        self.answers.wait()
        self.reads += 1
        self.fresh = True


@contextlib.contextmanager
def eight() -> Iterator[list[Gpu]]:
    gpus = [Gpu() for _ in range(8)]
    try:
        yield gpus
    finally:
        for gpu in gpus:
            gpu.answers.set()


def on_any_machine(check: Callable[[list[Gpu], float], None]) -> None:
    """Make this check with time limits that are multiplied by a number, until it holds with one of them."""
    for slower in SLOWER:
        with eight() as gpus:
            try:
                check(gpus, slower)
            except AssertionError:
                if slower == SLOWER[-1]:
                    raise
            else:
                return


@pytest.fixture
def gpus() -> Iterator[list[Gpu]]:
    with eight() as made:
        yield made


def fresh(gpus: list[Gpu]) -> list[int]:
    return [index for index, gpu in enumerate(gpus) if gpu.fresh]


def test_gpus_that_answer_are_read_in_one_thread(gpus: list[Gpu]) -> None:
    threads = ReadingThreads(gpus)
    for _ in range(3):
        threads.read(LONG_S)
    assert [gpu.reads for gpu in gpus] == [3] * 8
    assert len({gpu.thread for gpu in gpus}) == len(threads) == 1


@pytest.mark.parametrize(("hanging", "limit_s"), [((0, 7), 0.4), ((2, 3, 4), 0.6), ((0, 1, 2, 3, 4, 5, 6), 1.5)])
def test_gpus_that_hang_at_once_hide_none_of_the_others_in_the_same_round(
    hanging: tuple[int, ...], limit_s: float
) -> None:
    def check(gpus: list[Gpu], slower: float) -> None:
        threads = ReadingThreads(gpus)
        threads.read(LONG_S)
        for index in hanging:
            gpus[index].answers.clear()
        threads.read(limit_s * slower)
        others = [index for index in range(8) if index not in hanging]
        assert fresh(gpus) == others
        assert len(threads) == len(hanging) + 1
        threads.read(LIMIT_S * slower)
        assert fresh(gpus) == others
        assert len(threads) == len(hanging) + 1, "no new thread for a GPU that still hangs"

    on_any_machine(check)


def test_gpu_that_answers_again_is_read_while_the_other_one_still_hangs() -> None:
    def check(gpus: list[Gpu], slower: float) -> None:
        threads = ReadingThreads(gpus)
        gpus[1].answers.clear()
        gpus[4].answers.clear()
        threads.read(LIMIT_S * slower)
        assert fresh(gpus) == [0, 2, 3, 5, 6, 7]
        gpus[1].answers.set()
        threads.read(LIMIT_S * slower)
        assert fresh(gpus) == [0, 1, 2, 3, 5, 6, 7]
        assert gpus[1].thread != gpus[0].thread

    on_any_machine(check)


def test_a_gpu_that_answers_quickly_for_long_is_read_with_the_others_again() -> None:
    def check(gpus: list[Gpu], slower: float) -> None:
        threads = ReadingThreads(gpus)
        gpus[5].answers.clear()
        gpus[6].answers.clear()
        threads.read(LIMIT_S * slower)
        gpus[5].answers.set()
        gpus[6].answers.set()
        for _ in range(CALM_ROUNDS - 2):
            threads.read(LONG_S)
        assert len(threads) == 3
        for _ in range(4):
            threads.read(LONG_S)
        assert len(threads) == 1
        before = [gpu.reads for gpu in gpus]
        threads.read(LONG_S)
        assert [gpu.reads for gpu in gpus] == [count + 1 for count in before]
        assert len({gpu.thread for gpu in gpus}) == 1

    on_any_machine(check)


def test_a_gpu_that_hangs_again_after_it_was_joined_hides_none() -> None:
    def check(gpus: list[Gpu], slower: float) -> None:
        threads = ReadingThreads(gpus)
        gpus[5].answers.clear()
        threads.read(LIMIT_S * slower)
        gpus[5].answers.set()
        for _ in range(CALM_ROUNDS + 2):
            threads.read(LONG_S)
        assert len(threads) == 1
        gpus[5].answers.clear()
        threads.read(0.4 * slower)
        assert fresh(gpus) == [0, 1, 2, 3, 4, 6, 7]

    on_any_machine(check)


def test_no_gpu_needs_no_wait() -> None:
    threads = ReadingThreads([])
    threads.read(LONG_S)
    assert len(threads) == 1
