"""``trainwatch mcp`` with the protocol's own client: what an agent reads, and that only a person lets it act."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.e2e_world import World
from tests.goldens.journals import laid_out, recordings
from tests.tiers import ALL
from trainwatch.core.model.fact import CommandReceived

mcp = pytest.importorskip("mcp")
TRAINS = ("--steps", "4000", "--step-time", "0.02", "--save-every", "20")
ACTS = {"stop", "restart", "resume", "save"}


@asynccontextmanager
async def agent(env: dict[str, str], cwd: Path, *words: str) -> AsyncIterator[Any]:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "trainwatch", "mcp", *words], env=env, cwd=cwd
    )
    async with mcp.Client(server) as client:
        yield client


async def said(client: Any, tool: str, **given: Any) -> tuple[str, bool]:
    answer = await client.call_tool(tool, given)
    return answer.content[0].text, answer.is_error


def orders(world: World) -> list[str]:
    return [r.fact.verb for r in world.records() if isinstance(r.fact, CommandReceived)]


MORE = ("code_bug", "crash_asks", "disk_full", "ended_early", "gpu_lost", "hang_and_recovery", "memory_killed", "nan")
FAULTY = ("hang_asks", "out_of_memory", *(MORE if ALL else ()))
READS = ("status", "events", "report", "diagnose", "checkpoints", "logs", "wait")
LOG = "step 40/60 | loss 0.1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'labels'\n"


@pytest.mark.timeout(900)
async def test_faulty_runs_and_a_scripted_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reads all of each run, that of one twice, then tries to act; ``pytest -s`` shows the transcript."""
    known, home, log, journals = {each.name: each for each in recordings()}, tmp_path / "home", tmp_path / "log", {}
    log.write_text(LOG)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        for name in FAULTY:
            lines = [json.loads(line) for line in known[name].journal.splitlines()]
            for line in lines:
                if line.get("fact", {}).get("fact") == "attempt_started":
                    line["fact"]["log"] = str(log)
            told = msgspec.structs.replace(known[name], journal="".join(json.dumps(line) + "\n" for line in lines))
            run = stack.enter_context(laid_out(told, home, monkeypatch))
            journals[run] = run.journal.read_bytes()
        monkeypatch.undo()
        async with agent(dict(os.environ) | {"TRAINWATCH_HOME": str(home)}, tmp_path, "--act", "ask") as client:
            assert len((await said(client, "runs"))[0].splitlines()) == 1 + len(FAULTY)
            for run in journals:
                for tool in READS:
                    text, failed = await said(client, tool, run=run.id)
                    if failed:
                        assert "no such directory" in text, text  # the folder of a recorded run
                        continue
                    assert len(text.encode()) < 6200
                    seen = json.loads(text)["id"] if tool == "status" else text.partition("\n")[0].removeprefix("id: ")
                    if ALL or run is next(iter(journals)):
                        again, _ = await said(client, tool, run=run.id, since=seen)
                        assert again == f'{{"id":"{seen}","unchanged":true}}', tool
                    sys.stdout.write(f"{run.id:32} {tool:12} {len(text.encode()):5} bytes\n")
                for tool in ("resume", "stop"):
                    text, _ = await said(client, tool, run=run.id)
                    assert text.startswith("not done"), text
                    sys.stdout.write(f"{run.id:32} {tool:12} {text[:90]}\n")
    assert journals == {run: run.journal.read_bytes() for run in journals}, "nothing acted"


async def test_without_act_there_are_no_tools_that_act(tmp_path: Path) -> None:
    async with agent(dict(os.environ) | {"TRAINWATCH_HOME": str(tmp_path)}, tmp_path) as client:
        assert ACTS.isdisjoint(tool.name for tool in (await client.list_tools()).tools)
        for tool, given in (("stop", {"run": "job"}), ("report", {"run": "--output=x"}), ("logs", {"lines": "--all"})):
            assert (await said(client, tool, **given))[1]


async def test_nothing_is_done_without_a_yes_unless_all_may_be_done(world: World) -> None:
    world.write(*TRAINS)
    world.headless()
    world.at_step(30)
    async with agent(world.env, world.project, "--act", "ask") as client:
        text, _ = await said(client, "stop", run="job")
        assert text.startswith("not done")
    world.asks("ack", "job")
    assert set(orders(world)) == {"ask", "ack"}
    assert world.story().state == "running"
    async with agent(world.env, world.project, "--act", "ask") as client:
        await said(client, "restart", run="job")
    assert "Restart from" in (world.status()["needs_you"] or "")
    async with agent(world.env, world.project, "--act", "all") as client:  # it asks nobody
        await said(client, "restart", run="job")
    world.attempt(2)
    world.at_step(30, 2)
    by = [r.fact.by for r in world.records() if isinstance(r.fact, CommandReceived)]
    assert by[-1].endswith("(MCP)")
