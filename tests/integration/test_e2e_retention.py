"""A run that keeps its newest checkpoints: real files, real deletions, each written down before."""

from tests.fakes.e2e_trainer import save
from tests.fakes.e2e_world import World, until
from trainwatch.core.model.decision import DeleteCheckpoint


def names(world: World) -> list[str]:
    return sorted(p.name for p in world.out.glob("*.safetensors"))


def test_retention_deletes_only_older_verified_checkpoints_of_this_run(world: World) -> None:
    world.write(
        "--steps",
        "180",
        "--save-every",
        "20",
        "--hold-at",
        "165",
        more={"checkpoints": {"keep_last": 3}},
    )
    world.out.mkdir()
    save(world.out, 1)
    (world.out / "net-step00000001.safetensors").rename(world.out / "theirs-step00000001.safetensors")
    save(world.project, 2)
    kept = world.project / "net-step00000002.safetensors"
    (world.out / "link-step00000002.safetensors").symlink_to(kept)
    watcher = world.headless()

    until(
        lambda: (
            names(world)
            == [
                "link-step00000002.safetensors",
                "net-step00000120.safetensors",
                "net-step00000140.safetensors",
                "net-step00000160.safetensors",
                "theirs-step00000001.safetensors",
            ]
        ),
        "three of its own are left",
    )

    assert kept.exists()
    gone = until(
        lambda: [d.checkpoint.step for d in world.decisions(DeleteCheckpoint)] == [20, 40, 60, 80, 100],
        "five decisions",
    )
    assert gone
    records = world.records()
    decided = {r.decision.id: r.seq for r in records if isinstance(r.decision, DeleteCheckpoint)}
    done = {r.outcome.decision: r.seq for r in records if r.outcome is not None and r.outcome.decision in decided}
    assert all(decided[number] < seq for number, seq in done.items())
    told = "-> delete checkpoint: delete net-step00000020.safetensors: 3 newer verified ones are kept"
    until(lambda: told in watcher.said, "it is told")
    assert world.story().incidents == ()
    (world.out / "go").touch()
    assert watcher.ends() == 0
