"""Prefixes of containers, journals, launchers and loggers, and bars that a message is glued to."""

import pytest

from trainwatch.core.judge.text.lines import Carried, peel, unglued

BOOM = "KeyError: 'x'"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"Mar 03 04:12:11 rig python[8124]: [rank1]: {BOOM}", Carried(BOOM, "1")),
        ("2026-03-03T04:12:11+00:00 rig kernel: NVRM: Xid", Carried("NVRM: Xid")),
        ("[12345.678901] oom-kill: x", Carried("oom-kill: x")),
        (f"trainer-1  | {BOOM}", Carried(BOOM)),
        (f"gpu-1: [0]: {BOOM}", Carried(BOOM, "0")),
        (f"0: [2026-01-01 00:00:00] {BOOM}", Carried(BOOM, "0")),
        (f"(TaskRunner pid=12, ip=10.0.0.1) {BOOM}", Carried(BOOM, "TaskRunner pid=12")),
        ("E0101 10:10:11.111 140 t.py:88] Uncaught: x", Carried("Uncaught: x", "", "error")),
        ("[rank7]:[E311 11:22:01 ProcessGroupNCCL.cpp:1346] [PG 0] x", Carried("[PG 0] x", "7", "error")),
        ("2026-03-04 11:02:55.122: W tensorflow/core/op_kernel.cc:1827] x", Carried("x", "", "warning")),
        ('2026-07-01 10:00:06 ERROR   File "/job/x.py", line 3', Carried(' File "/job/x.py", line 3', "", "error")),
        ("[2026-02-11 08:20:16,402] [ERROR] [launch.py:322:main] x", Carried("x", "", "error")),
        ("ERROR:root:x failed", Carried("x failed", "", "error")),
        ("wandb: WARNING Network error", Carried("Network error", "", "warning")),
        ("| WARNING: overflow", Carried("overflow", "", "warning")),
        ('{"level": "error", "msg": "[rank3]: boom", "pod": "a"}', Carried("boom", "3", "error")),
        ('{"message": "failed", "exc_info": "Traceback\\nKeyError"}', Carried("failed\nTraceback\nKeyError")),
        ('{"loss": 0.4, "msg": "x"}', Carried('{"loss": 0.4, "msg": "x"}')),
        ('{"prompt": "CUDA error", "text": "x"}', Carried('{"prompt": "CUDA error", "text": "x"}')),
        ('{"log": 3}', Carried('{"log": 3}')),
        ('{"log": "half', Carried('{"log": "half')),
        ('{"log" "x"}', Carried('{"log" "x"}')),
        ('{"MESSAGE": [27, 91, 109, 75], "_PID": "7"}', Carried("\x1b[mK", "7")),
        ("", Carried("")),
    ],
)
def test_prefixes_of_carriers_are_removed(line: str, expected: Carried) -> None:
    assert peel(line) == expected


def test_json_may_hold_several_lines_and_be_carried_itself() -> None:
    line = '2026-01-01T00:00:00Z stdout F {"level": "warning", "message": "Traceback\\nKeyError"}'
    assert peel(line) == Carried("Traceback\nKeyError", "", "warning")


BAR = "steps:  44%|████▍     | 4400/10000 [1:02:11<1:19:09,  1.18it/s, avr_loss=0.0912]"


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (f"{BAR}Killed", (BAR, "Killed")),
        (f"{BAR} Killed", (BAR, "Killed")),
        ("12it [00:01,  3.2it/s]KeyError: 'x'", ("12it [00:01,  3.2it/s]", BOOM)),
        (BAR, (BAR,)),
        ("loss: 0.2Traceback (most recent call last):", ("loss: 0.2", "Traceback (most recent call last):")),
        ("u@h:~$ Traceback (most recent call last):", ("u@h:~$ ", "Traceback (most recent call last):")),
        ("Original Traceback (most recent call last):", ("Original Traceback (most recent call last):",)),
        (
            "1/9 [==>....] - loss: 0.2021-02-18 20:55:36.002311: E tensorflow/x.cc:9] y",
            ("1/9 [==>....] - loss: 0.", "2021-02-18 20:55:36.002311: E tensorflow/x.cc:9] y"),
        ),
        ("losses [0.1, 0.2] of 3", ("losses [0.1, 0.2] of 3",)),
    ],
)
def test_message_behind_a_bar_is_a_piece_of_its_own(line: str, pieces: tuple[str, ...]) -> None:
    assert unglued(line) == pieces


def test_prefixes_are_removed_to_a_bound() -> None:
    assert peel("[rank0]: " * 9 + BOOM).text == f"[rank0]: {BOOM}"
