"""``troubles`` of status: the supervisor, our own files and the open incidents, the worst first."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from trainwatch.core.app.runs.report import gather
from trainwatch.core.app.runs.run_status import read_run
from trainwatch.core.app.runs.supervisor_life import supervisor_life, unusable
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import AttemptStarted, Fact, IncidentOpened, RunCreated, StateChanged
from trainwatch.core.model.run import Incident, RunSpec, RunState
from trainwatch.core.model.story import RESPONSIVE_S, RunStory, Situation, SupervisorLife, Trouble
from trainwatch.core.model.story_fold import apply
from trainwatch.core.processes import boot_id
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import RECORD_BYTES, LifeSignWriter, SupervisorLock, read_life_sign
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.report_building import build_report
from trainwatch.core.views.state.concerns import troubles
from trainwatch.core.views.state.status import status_object

CREATED = RunCreated(run="r", name="r", command=("x",), cwd="/", preset="generic")
ALIVE = SupervisorLife(pid=7, alive=True, responsive=True, age_s=0.5)
FROZEN = SupervisorLife(pid=7, alive=True, age_s=40.0, stopped=True)


def story(state: RunState = "running", *more: Fact) -> RunStory:
    found = RunStory()
    for seq, fact in enumerate(
        (CREATED, AttemptStarted(attempt=1, pid=9), StateChanged(state=state, reason=""), *more), 1
    ):
        found = apply(found, Record(seq=seq, t=float(seq), wall=1000.0 + seq, fact=fact))
    return found


def incident(number: int, severity: str) -> IncidentOpened:
    seen = Incident(
        id=number, t=1.0, wall=1001.0, attempt=1, kind="loss", class_="nan_loss", reason="NaN", severity=severity  # type: ignore[arg-type]
    )  # fmt: skip
    return IncidentOpened(incident=seen)


def test_troubles_are_listed_worst_first_and_a_healthy_run_has_none() -> None:
    assert troubles(Situation(story=story(), now_wall=1100.0), ALIVE) == ()
    own = Trouble(kind="state_disk", level="danger", text="full")
    now = Situation(story=story("running", incident(1, "warning")), now_wall=1100.0, troubles=(own,))
    found = troubles(now, FROZEN)
    assert [t.kind for t in found] == ["supervisor_frozen", "state_disk", "loss"]
    assert found[0].since == 1060.0
    assert "kill -CONT 7" in found[0].text


@pytest.mark.parametrize(("state", "needed"), [("running", 2), ("finished", 0)])
def test_trainwatchs_own_troubles_need_a_person_and_the_supervisors_report_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: RunState, needed: int
) -> None:
    """An output disk became read-only, the state disk full: "nothing needs you" stood in the report."""
    spec = RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0, output_dir=str(tmp_path))
    run = RunDirectory.create(tmp_path, spec)
    with JournalWriter(run.journal) as journal:
        facts = (CREATED, AttemptStarted(attempt=1, pid=9), StateChanged(state=state, reason=""))
        journal.append_all(1.0, 1001.0, facts)
    life = msgspec.structs.replace(
        ALIVE, troubles=(Trouble(kind="state_disk", level="danger", text="told", since=5.0),)
    )
    place = "trainwatch.core.app.runs.supervisor_life"
    monkeypatch.setattr(f"{place}.supervisor_life", lambda *_, **__: life)
    monkeypatch.setattr(f"{place}.unusable", lambda _: "it is read-only")
    with SupervisorLock(run.lock):
        status, said, _ = read_run(run)
        assert build_report(*gather(run)).needs == said.needs
    texts = [each["text"].partition(";")[0] for each in status["troubles"]]
    assert sorted(texts) == [f"{tmp_path}: it is read-only", "told"]
    assert [need.kind for need in said.needs] == ["trainwatch"] * needed


@pytest.mark.parametrize(("state", "kinds"), [("running", ["supervisor_dead"]), ("finished", []), ("stopped", [])])
def test_a_run_that_is_over_needs_no_supervisor(state: RunState, kinds: list[str]) -> None:
    assert [t.kind for t in troubles(Situation(story=story(state)), SupervisorLife())] == kinds


def test_status_has_the_fields_of_a_frozen_supervisor() -> None:
    status = status_object(Situation(story=story(), now_wall=1100.0), run="r", supervisor=FROZEN)
    assert status["supervisor"] == {"pid": 7, "alive": True, "responsive": False, "age_s": 40.0}
    assert [set(t) for t in status["troubles"]] == [{"kind", "level", "text", "since"}]


def test_a_sign_of_life_is_rewritten_in_place_and_has_an_age(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    writer = LifeSignWriter(path, start_ticks=5)
    writer.beat()
    sign = read_life_sign(path)
    assert sign is not None
    assert (sign.pid, sign.start_ticks) == (os.getpid(), 5)
    assert sign.age_s is not None
    assert sign.age_s < 5
    assert path.stat().st_size == RECORD_BYTES
    path.write_text(f"1 2 {time.monotonic():.2f} another-boot")
    assert read_life_sign(path) == type(sign)(pid=1, start_ticks=2, age_s=None)
    for damaged in ("", "1 2", "a b c d", "\xff"):
        path.write_bytes(damaged.encode("latin-1"))
        assert read_life_sign(path) is None


def test_a_supervisor_whose_last_turn_is_old_does_not_respond(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0))
    assert supervisor_life(run) == SupervisorLife()
    with SupervisorLock(run.lock):
        assert supervisor_life(run).responsive, "its first sign comes after the lock"
        begun = time.time() - RESPONSIVE_S - 30
        os.utime(run.lock, (begun, begun))
        assert not supervisor_life(run).responsive, "without any sign nothing shows that it turns"
        for age_s, responsive in ((0.0, True), (RESPONSIVE_S + 30, False)):
            run.life_sign.write_text(f"{os.getpid()} 0 {time.monotonic() - age_s:.2f} {boot_id()}")
            life = supervisor_life(run)
            assert (life.alive, life.responsive) == (True, responsive)
            assert life.age_s == pytest.approx(age_s, abs=2.5)


def test_a_folder_that_cannot_be_written_is_named_with_its_reason(tmp_path: Path) -> None:
    assert unusable(tmp_path) is None
    assert unusable(tmp_path / "gone") == "does not exist"
