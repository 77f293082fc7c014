"""A broken GPU channel of WSL2: no retry, and people hear what to do on the Windows side."""

import pytest

from tests.builders import Story, World, judge
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt
from trainwatch.core.model.observation import Exit, KernelLine, LogChunk
from trainwatch.core.model.settings import Restart, Settings

UNKNOWN = "\nRuntimeError: CUDA error: unknown error\n"
LOST = "misc dxg: dxgk: device removed"
SILENT = "misc dxg: dxgk: dxgvmb_send_sync_msg: wait for completion failed: fffffe00"
FOR_EVER = "misc dxg: dxgk: dxgvmb_send_create_process: create_process failed -75"
HARMLESS = "misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22"


def running() -> World:
    settings = Settings(restart=Restart(max_restarts=9, backoff_s=(0.0,)))
    return World(judge(settings)).begin().watch(Story(meta=False, period_s=5.0).load(10).train(40))


def crash(world: World, kernel: str | None = None) -> World:
    said = () if kernel is None else (KernelLine(t=world.t, text=kernel),)
    return world.see(*said, LogChunk(t=world.t, text=UNKNOWN), Exit(t=world.t + 0.4, code=1, died_t=world.t + 0.1))


@pytest.mark.parametrize("kernel", [LOST, FOR_EVER])
def test_a_channel_that_is_gone_is_not_tried_again(kernel: str) -> None:
    world = crash(running(), kernel)
    assert world.word == "given_up"
    assert "channel to the GPU is broken" in world.of(GiveUp)[0].reason
    body = world.of(NotifyPeople)[-1].body
    assert "wsl --shutdown" in body
    assert "trainwatch resume" in body


def test_a_message_that_failed_once_is_tried_again_and_twice_is_not() -> None:
    world = crash(running(), SILENT)
    assert len(world.of(StartAttempt)) == 2
    world.watch(Story(meta=False, period_s=5.0).load(10).train(60))
    crash(world, SILENT)
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize("kernel", [None, HARMLESS, "misc dxg: dxgk: dxgkio_make_resident: Ioctl failed: -12"])
def test_the_same_error_without_the_channels_word_is_retried(kernel: str | None) -> None:
    world = crash(running(), kernel)
    assert len(world.of(StartAttempt)) == 2
