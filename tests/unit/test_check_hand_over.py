"""Commands that hand the training to somebody else: what the check says, and when it says nothing."""

from pathlib import Path

import pytest

from trainwatch.core.app.preflight.command_checks import hand_over, handed_over
from trainwatch.core.model.run import RunSpec

HANDED = {
    "docker run --gpus all -d --rm -v $PWD:/w img python t.py": "the container daemon",
    "docker run --detach img": "the container daemon",
    "podman run -itd img": "the container daemon",
    "docker compose -f c.yml up -d": "the container daemon",
    "docker compose up -d": "the container daemon",
    "docker start trainer": "the container daemon",
    "tmux new -d -s t 'python t.py'": "the tmux server",
    "tmux new-session -ds t python t.py": "the tmux server",
    "tmux send-keys -t t 'python t.py' Enter": "the tmux server",
    "screen -dmS t python t.py": "a screen session",
    "sbatch job.sh": "Slurm",
    "sbatch --gres=gpu:1 job.sh; squeue --me": "Slurm",
    "cd jobs && bsub < job.sh": "LSF",
    "kubectl apply -f job.yaml": "Kubernetes",
    "systemd-run --user python t.py": "systemd",
    "ray job submit --no-wait -- python t.py": "Ray",
    "ssh -f gpu1 python t.py": "another host",
    "docker run -d --name t img && echo started": "the container daemon",
}
SEEN = (
    "python t.py",
    "docker run --rm --gpus all img python t.py -d cuda",
    "docker run -it img",
    "docker start -a trainer",
    "docker run -d --name db redis; python t.py",
    "docker run -d --name t img; docker logs -f t",
    "tmux list-sessions; python t.py",
    "screen -D -m python t.py",
    "sbatch --wait job.sh",
    "qsub -sync y job.sh",
    "srun python t.py",
    "systemd-run --scope python t.py",
    "ssh gpu1 python t.py",
    "kubectl run -i --rm t --image img",
    "setsid -w python t.py",
    "python t.py & wait",
    "tensorboard --logdir x & python t.py",
)
FOLLOWED = ("nohup python t.py > log 2>&1 &", "python t.py &\necho started", "setsid -f python t.py")


@pytest.mark.parametrize("text", HANDED)
def test_a_command_that_hands_the_training_to_somebody_else_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{text}\n")
    for command in (("bash", "-c", text), ("./run.sh",), ("bash", "-c", "exec ./run.sh")):
        found = hand_over(command, tmp_path)
        assert found is not None
        assert f"hands the training to {HANDED[text]} and ends" in found.text
        assert not found.followed
        assert found.remedy


@pytest.mark.parametrize("text", SEEN)
def test_a_command_that_stays_until_the_training_ends_is_not_named(text: str) -> None:
    assert hand_over(("bash", "-c", text), Path("/")) is None


@pytest.mark.parametrize("text", FOLLOWED)
def test_what_goes_on_in_the_background_is_named_and_followed(text: str) -> None:
    found = hand_over(("bash", "-c", text), Path("/"))
    assert found is not None
    assert "followed as the training" in found.text
    assert handed_over(RunSpec(id="r", name="r", command=("bash", "-c", text), cwd="/", created_wall=0.0)) == ""


def test_a_command_without_a_shell_is_named() -> None:
    found = hand_over(("docker", "run", "-d", "img", "python", "t.py"), Path("/"))
    assert found is not None
    assert hand_over(("env", "A=1", "sbatch", "job.sh"), Path("/")) is not None
    assert hand_over(("docker", "run", "img", "python", "t.py"), Path("/")) is None
