"""What follows from what: notices, budgets, what is not worth a retry, and how the watch itself ends."""

import json
import signal
import sys
from typing import Any

from tests.fakes.e2e_world import HASTY, World, strict_json, until
from tests.tiers import SECOND_TIER

LONG = ("--steps", "3000", "--step-time", "0.02", "--save-every", "20")


def notices(world: World) -> list[Any]:
    path = world.project / "notices.jsonl"
    return [strict_json(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(world: World) -> dict[str, Any]:
    """[notify] that keeps every event it gets on its standard input."""
    code = "import sys; open('notices.jsonl', 'a').write(sys.stdin.read().strip() + chr(10))"
    return {"notify": {"command": [sys.executable, "-c", code]}}


def test_incident_restart_recovery_and_finish_are_notified(world: World) -> None:
    world.write("--steps", "80", "--crash-at", "50", more=told(world))
    assert world.headless().ends() == 0
    heard = notices(world)
    assert sorted(n["event"] for n in heard) == ["finish", "incident", "recovery", "restart"]
    by_event = {n["event"]: n for n in heard}
    assert by_event["incident"]["run"] == "job"
    assert by_event["incident"]["incident"] == by_event["recovery"]["incident"] == 1
    assert "cuda_unknown_error" in by_event["incident"]["title"]
    assert by_event["restart"]["title"] == "job: attempt 2 started"
    assert "step 40" in by_event["restart"]["body"]
    assert "10 steps lost" in by_event["recovery"]["body"]
    short = world.asks("report", "--short").out.splitlines()
    assert len(short) >= 4
    body = by_event["finish"]["body"].splitlines()
    assert set(body) >= {line for line in short if not line.startswith("  loss ")}
    assert any(line.startswith("  loss ") for line in body), "the curve is on disk before the notice is written"


@SECOND_TIER
def test_a_failure_that_a_retry_cannot_fix_is_given_up_at_once(world: World) -> None:
    world.write("--fail-at-once", "import")
    watcher = world.headless()
    assert watcher.ends() == 1
    story = world.story()
    (crash,) = story.incidents
    assert crash.class_ == "import_error"
    assert "No module named 'bitsandbytes'" in watcher.said
    assert len(world.lives()) == 1


def test_sigterm_with_stop_trainer_ends_the_trainer_too(world: World) -> None:
    world.write(*LONG)
    watcher = world.headless("--stop-trainer")
    world.at_step(10)
    watcher.signal(signal.SIGTERM)
    assert watcher.ends() == 0
    assert not world.alive(1)
    assert "interrupted at step" in world.log()
    assert world.story().state == "stopped"


@SECOND_TIER
def test_a_second_supervisor_is_refused_by_the_first_one_in_the_background_too(world: World) -> None:
    world.write(*LONG)
    first = world.headless()
    world.in_state("running")
    for words in ((), ("--detach",)):
        done = world.do("supervise", world.run.id, *words)
        assert (done.code, f"already has a supervisor (pid {first.pid})" in done.err) == (4, True), done
        assert done.out == ""


def test_run_with_json_prints_nothing_but_json_lines(world: World) -> None:
    done = world.do("run", "--json", "--", sys.executable, "-c", "print('loss: nan'); print('loss: 1.0')")
    assert done.code == 0
    records = [strict_json(line) for line in done.out.splitlines()]
    assert records[0]["fact"]["fact"] == "run_created"
    assert records[-1]["fact"]["fact"] == "supervisor_ended"
    assert json.loads(json.dumps(records)) == records


def test_with_notify_a_crash_is_held_and_with_ask_a_hang_waits_for_the_answer(world: World) -> None:
    """One run: its crash is told and nothing starts; its hang is a question, and the named answer restarts it."""
    steps = ("--steps", "120", "--step-time", "0.01", "--save-every", "20", "--busy", "--crash-at", "30", "--hang-at")
    world.write(*steps, "50", more=told(world) | HASTY | {"restart": HASTY["restart"] | {"act": "notify"}})
    watcher = world.headless()
    until(lambda: world.story().question, "the crash is told")
    assert world.story().state == "stopped"
    assert len(world.lives()) == 1
    assert world.asks("act", "ask").code == 0
    assert world.asks("resume", "--incident", "1").code == 0
    until(lambda: world.story().state == "hung" and world.story().question, "the hang is asked about")
    held = world.status()["question"]
    assert held["asks"]
    number = str(held["incident"])
    assert held["commands"]["yes"] == f"trainwatch restart {world.run.id} --incident {number}"
    assert len(world.lives()) == 2
    late = world.asks("restart", "--incident", "1")
    assert late.code == 1
    assert "incident 1 waits for no answer any more" in late.err
    assert world.asks("restart", "--incident", number).code == 0
    assert watcher.ends() == 0
    assert len(world.lives()) == 3
    heard = [n["event"] for n in notices(world)]
    assert heard[:3] == ["incident", "withheld", "question"]  # the second choice asks about the crash
    assert heard.count("question") == 2
    report = world.asks("report").out
    assert "would have restarted at" in report
    assert "from net-step00000020.safetensors (step 20)" in report
