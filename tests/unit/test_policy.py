"""The rules of recovery/policy.py, one by one and in their order: given a failure, the answer."""

import msgspec
import pytest

from trainwatch.core.judge.memory import Cause, History, Rung, SettingsThatRan
from trainwatch.core.judge.recovery import policy
from trainwatch.core.judge.recovery.policy import Again, Answer, FailureInput, Finish, GiveUpRun, Hold
from trainwatch.core.judge.recovery.remedies import Option
from trainwatch.core.judge.run_states import RestartPlan
from trainwatch.core.model.preset import Change
from trainwatch.core.model.settings import Restart
from trainwatch.core.model.shipped import Remedy

GB = 1e9
SETTINGS = Restart(max_restarts=3, backoff_s=(0.0, 10.0), network_wait_s=(30.0, 60.0, 300.0))
RAN = SettingsThatRan(attempt=1)
CLIMBED, CHOSEN = Rung(below="low", climbed=True), Rung(below="low", climbed=False)


def remedy(name: str) -> Option:
    row = Remedy(name=name, title=f"title of {name}", failures=(), equivalent=True, cost="slower", source="test")
    return Option(remedy=row, changes=(Change(where="config", key="size", before=4, after=2),))


WAITS = {"killed_by_user": "person", "network_error": "network", "disk_full": "disk", "gpu_lost": "gpu"}

HALF, LESS, SAFER = remedy("half"), remedy("less"), remedy("safer")


def fresh(text: str) -> str:
    """An equal text that is another object, as it comes from a file: rules must not compare identities."""
    return "".join(list(text))


def cause(
    class_: str = "cuda_unknown_error", attempt: int = 2, position: int | None = 100, kind: str = "crash"
) -> Cause:
    return Cause(kind=fresh(kind), class_=fresh(class_), attempt=attempt, position=position)  # type: ignore[arg-type]


def failure(
    class_: str = "cuda_unknown_error", *, kind: str = "crash", position: int | None = 100, **given: object
) -> FailureInput:
    """A crash that a restart may cure, in a run with restarts left, unless said otherwise."""
    usual = FailureInput(
        cause=cause(class_, position=position, kind=kind),
        reason="exit code 1: the message",
        incident=7,
        plan=RestartPlan(reason="restart"),
        restart=SETTINGS,
        restarts_made=3,
        waits_for=WAITS.get(class_),  # type: ignore[arg-type]
    )
    return msgspec.structs.replace(usual, **{k: fresh(v) if isinstance(v, str) else v for k, v in given.items()})


def before(*classes: str, position: int | None = 100) -> History:
    return tuple(cause(class_, attempt, position) for attempt, class_ in enumerate(classes, 1))


def unstarted(said: str, *, given: str | None = None, lasted_s: float = 2.0) -> Cause:
    """The end of a start in the own code."""
    return Cause(
        kind="crash",
        class_="unknown",
        attempt=2,
        stepped=False,
        given=given,
        line="the message",
        said=said,
        raised="own",
        lasted_s=lasted_s,
    )


SPENT = "3 restarts without a new checkpoint in between: a person is needed"
BROKEN = "WSL2's channel to the GPU is broken: a restart inside this virtual machine would fail, too"
NEVER = "no attempt has trained yet, and a restart does not cure it"
REPORT = "evidence: `trainwatch events`; `trainwatch report` collects all of it in one file"
ENDED_IT = "failures: attempt 2: crash (cuda_unknown_error) at step 100"

AWAY = msgspec.structs.replace(cause("io_error", position=None), stepped=False)

CASES: dict[str, tuple[FailureInput, Answer]] = {
    # training_is_done
    "a hang after the last step is the end of the training": (failure("exiting", kind="hang"), Finish()),
    "that goes before everything else": (
        failure("exiting", kind="hang", remedy=HALF, rung=CLIMBED, spent=True, ran_before=RAN), Finish(),
    ),
    # person_ended_it
    "a launcher that ended its other ranks is no person": (failure("killed_by_user", confidence=0.5), Again(back_off=True)),
    "whatever else could be done": (failure("killed_by_user", remedy=HALF, rung=CLIMBED, ran_before=RAN), Hold("a person ended the trainer", "ordered")),
    # wsl_channel_is_broken
    "a GPU that Windows took away does not come back": (
        failure(gpu_channel="lost", remedy=HALF, ran_before=RAN), GiveUpRun(BROKEN, policy.windows_side(), counted=False),
    ),
    "another failure has nothing to do with the channel": (failure("segfault", gpu_channel="lost"), Again(back_off=True)),
    # new_settings_do_not_start
    "settings that do not start give way to those that ran": (
        failure(ran_before=RAN, curable=False, remedy=HALF, rung=CLIMBED), Again(to=RAN, charged=False, counted=False),
    ),
    "also if the launch itself failed": (failure("config_error", kind="launch", ran_before=RAN), Again(to=RAN, charged=False, counted=False)),
    "a hang before the first step is restarted with them first": (failure("idle", kind="hang", ran_before=RAN), Again(back_off=True)),
    # rung_is_too_high
    "a rung that the ramp climbed to is left": (failure(rung=CLIMBED, remedy=HALF), Again(rung=CLIMBED)),
    "not for one that settings never cause": (failure("gpu_lost", settings="never", rung=CLIMBED), Again(back_off=True)),
    "not without restarts": (failure(rung=CLIMBED, spent=True, restart=SETTINGS, waiting=()), GiveUpRun(SPENT, (ENDED_IT, REPORT))),
    "not if a remedy fits": (
        failure("cuda_oom", settings="likely", curable=False, rung=CHOSEN, remedy=HALF), Again(remedy=HALF),
    ),
    "not if a restart may help": (failure(settings="likely", rung=CHOSEN), Again(back_off=True)),
    # remedy_applies
    "a remedy goes before waiting for the network": (failure("network_error", remedy=HALF), Again(remedy=HALF)),
    # network_failed
    # site_ended_it
    "a preempted job goes on in the next one": (failure("killed_by_user", job="preempted", spent=True, remedy=HALF), Again(charged=False, delay_s=0.0)),
    "a failed node is waited for": (failure("unknown", job="node", history=before("unknown")), Again(charged=False, delay_s=10.0)),
    "without restarts, too, and whatever else": (
        failure("network_error", spent=True, curable=False, remedy=HALF, ran_before=None), Again(charged=False, delay_s=30.0),
    ),
    "and a mount that was read before": (failure(cause=AWAY, spent=True), Again(charged=False, delay_s=30.0)),
    "not what a file of the data may be": (failure(cause=AWAY, confidence=0.7), Again(back_off=True)),
    "nor what no attempt has read yet": (failure(cause=AWAY, trained=False), Again(back_off=True)),
    # disk_is_full
    "room on the disk is waited for": (
        failure("disk_full", spent=True, curable=False, disk_free_bytes=1.9 * GB, disk_need_bytes=2 * GB), Again(charged=False, need_bytes=2 * GB),
    ),
    "with just enough room another disk is full": (
        failure("disk_full", curable=False, disk_free_bytes=2 * GB, disk_need_bytes=2 * GB, waiting=(LESS,)),
        Again(
            back_off=True, note="2.00 GB are free on the disk of the checkpoints: "
            "the failed save freed its space, or another disk or a quota is full"
        ),
    ),
    # gpu_is_lost
    "no restart onto a lost GPU": (failure("gpu_lost", gpus_usable=False), Again(needs_gpu=True)),
    "another failure does not wait for a GPU": (failure(gpus_usable=False), Again(back_off=True)),
    # budget_is_spent
    "the settings allow no restart": (
        failure(spent=True, restarts_made=0),
        GiveUpRun("no restart is allowed (max_restarts = 0): a person is needed", (ENDED_IT, REPORT)),
    ),
    # never_trained
    "also without restarts": (
        failure("code_bug", curable=False, trained=False, spent=True, waiting=(LESS,)),
        GiveUpRun(
            f"{NEVER}: exit code 1: the message",
            (
                "failures: attempt 2: crash (code_bug) at step 100",
                REPORT,
                "proposed: title of less (size 4 -> 2; cost: slower): `trainwatch resume --with less`",
            ),
            (LESS,),
        ),
    ),
    "a command that cannot be started needs no advice": (
        failure("config_error", kind="launch", curable=False, trained=False),
        GiveUpRun("the trainer cannot be started: exit code 1: the message"),
    ),
    "nor does one that failed too often": (failure("config_error", kind="launch", spent=True), GiveUpRun(f"{SPENT}: the trainer cannot be started: exit code 1: the message")),
    "memory that no remedy helps ends the new settings and not the run": (
        failure("cuda_oom", settings="likely", curable=False, ran_before=RAN), Again(to=RAN, charged=False),
    ),
    "a certain one is": (
        failure("code_bug", curable=False, trained=False, confidence=0.8, position=None),
        GiveUpRun(f"{NEVER}: exit code 1: the message", ("failures: attempt 2: crash (code_bug)", REPORT)),
    ),
    "a full disk is waited for at the start, too": (
        failure("disk_full", curable=False, trained=False, disk_need_bytes=2 * GB), Again(back_off=True),
    ),
    # checkpoint_is_not_read
    "a checkpoint with which the trainer does not start gives way to the one before": (
        failure("code_bug", unread="passed_over", cause=unstarted("KeyError: 'meta'", given="a"), spent=True), Again(passed_over="a"),
    ),
    # start_ends_alike
    "two starts that end with one line of the own code are enough": (
        failure("unknown", cause=unstarted("Boom: x"), history=(unstarted("Boom: x"),), advice=("a",)),
        GiveUpRun(
            "exit code 1: the message; two starts ended with this line before any step",
            ("failures: attempt 2: crash (unknown); attempt 2: crash (unknown)", "try: a", REPORT),
            title="given up: the message",
        ),
    ),
    "not with another line": (
        failure("unknown", cause=unstarted("Boom: x"), history=(unstarted("Boom: y"),)), Again(back_off=True),
    ),
    "nor if the start took minutes": (
        failure("unknown", cause=unstarted("Boom: x", lasted_s=200.0), history=(unstarted("Boom: x"),)), Again(back_off=True),
    ),
    "nor if the cause lies elsewhere": (
        failure("unknown", cause=unstarted("Boom: x"), history=(unstarted("Boom: x"),), elsewhere=True), Again(back_off=True),
    ),
    # nan_is_left_to_a_person, nan_comes_back
    "NaN goes back to an older checkpoint": (failure("nan_loss", curable=False), Again(back_off=True)),
    "unless a person is to decide": (
        failure("nan_loss", nan_action="stop", position=None, remedy=HALF),
        GiveUpRun(
            'exit code 1: the message; [nan] action = "stop" leaves what follows to a person',
            ("failures: attempt 2: crash (nan_loss)", REPORT,
             "proposed: title of half (size 4 -> 2; cost: slower): `trainwatch resume --with half`"),
            (HALF,),
        ),
    ),
    "another failure is not meant by that": (failure(nan_action="stop"), Again(back_off=True)),
    "also where no step is printed": (
        failure("nan_loss", history=before("nan_loss", position=None), position=None),
        GiveUpRun(
            "NaN again, and no new checkpoint since the last NaN: exit code 1: the message",
            ("failures: attempt 1: crash (nan_loss); attempt 2: crash (nan_loss)", REPORT),
        ),
    ),
    "not after a new checkpoint": (
        failure("nan_loss", history=before("nan_loss", position=60), saved=True), Again(back_off=True),
    ),
    # fails_at_the_same_step
    "a way to resume that the trainer does not take ends the run, whatever else could be done": (
        failure("config_error", wrong_way="it does not take --resume", other_way=("correct it",), spent=True),
        GiveUpRun("it does not take --resume", ("correct it",)),
    ),
    "unless the log is too coarse to tell": (failure(history=before("cuda_unknown_error"), step_known=False), Again(back_off=True)),
    "or the class comes from outside": (failure("port_in_use", history=before("port_in_use"), step_matters=False), Again(back_off=True)),
    "a stride away is the same step": (
        failure(history=before("cuda_unknown_error", position=98), stride=2, ran_before=RAN, settings="likely"), Again(to=RAN, charged=False),
    ),
    # restart_as_it_was
    "nothing is proposed for settings that are new": (
        failure("idle", kind="hang", waiting=(LESS,), ran_before=RAN), Again(back_off=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "answer"), CASES.values(), ids=list(CASES))
def test_given_a_failure_then_the_answer(given: FailureInput, answer: Answer) -> None:
    assert policy.choose(given) == answer


def test_every_rule_decides_one_of_the_cases() -> None:
    deciding = {next(rule for rule in policy.RULES if rule(given) is not None) for given, _ in CASES.values()}
    assert deciding == set(policy.RULES)


def test_giving_up_shows_where_to_look() -> None:
    answer = policy.choose(
        failure(
            spent=True,
            advice=("a", "b", "c", "d", "e"),
            kernel=("k1", "k2", "k3"),
            still_open=("o1", "o2", "o3", "o4"),
            waiting=(HALF, LESS, SAFER, HALF, LESS),
        )
    )
    assert isinstance(answer, GiveUpRun)
    assert answer.advice[:-4] == (
        ENDED_IT,
        "hardware or driver: kernel log: k1; k2",
        "still open: o1; o2; o3",
        "try: a",
        "try: b",
        "try: c",
        "try: d",
        REPORT,
    )
    assert [line.rpartition(" ")[2] for line in answer.advice[-4:]] == ["half`", "less`", "safer`", "half`"]
    assert answer.counted
