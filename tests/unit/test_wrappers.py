"""Programs that start the trainer elsewhere: how their words are read, and what is told about each."""

import shlex
from pathlib import Path

import pytest

from trainwatch.core.act.elsewhere import LABEL, container_layer, marked
from trainwatch.core.app.preflight.command_checks import place_told
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.wrappers import layers

READ = {
    "docker run --rm --gpus all -v /a:/b -w/w -itd img python t.py -d cuda": [("container", "img")],
    "sudo -u bob -E A=1 docker --context gpu run --name=x img python t.py": [("user", "A=1"), ("container", "img")],
    "docker -H unix:///x compose -f c.yml run --rm -e A=1 train python t.py": [("service", "train")],
    "docker-compose -f c up": [("services", "")],
    "docker exec -it c1 python t.py": [("in_container", "c1")],
    "ssh -p 22 -tt me@gpu 'python t.py'": [("host", "me@gpu")],
    "conda run -n env python t.py": [("environment", "")],
    "srun -n 1 --gres=gpu:1 python t.py": [("step", "")],
    "kubectl -n ns exec -it pod -- python t.py": [("pod", "pod")],
    "A=1 nice -n 5 timeout -s INT 3h python t.py": [("plain", ""), ("plain", "3h")],
    "docker pull img": [],
    "conda activate env": [],
}
TOLD = {
    "docker run --rm -v /out:/out img python t.py": "runs in a container of docker: stopped, paused and measured",
    "docker run -it --rm -v /out:/out img python t.py": "docker refuses -it here",
    "docker run -v /out:/out --name t img python t.py": "cannot have the name t",
    "podman run --rm --restart always -v /out:/out img python t.py": "podman starts it again by itself",
    "docker run --rm -v /host:/out img python t.py": "/out is not mounted under its own path",
    "docker exec c1 python t.py": "docker exec passes no signal on, so a stop leaves it running",
    "docker compose up": "use `docker compose run --rm SERVICE`",
    "ssh gpu1 python t.py": "ssh gpu1 -t trainwatch run --detach",
    "conda run -n e python t.py": "no step, loss or error is seen before",
    "conda run --no-capture-output -n e python t.py": "as any process of yours",
    "sudo python t.py": "the output comes in blocks",
    "srun python t.py": 'engine = "slurm"',
    "bash -c 'docker run --rm img python t.py'": "its container is not known",
}


def spec(text: str) -> RunSpec:
    return RunSpec(id="r", name="r", command=tuple(shlex.split(text)), cwd="/", created_wall=0.0, output_dir="/out")


@pytest.mark.parametrize("text", READ)
def test_a_wrapper_is_read_up_to_the_command_behind_it(text: str) -> None:
    words = shlex.split(text)
    found = layers(words)
    assert [(layer.kind, layer.names[0] if layer.names else "") for layer in found] == READ[text]
    if found and found[-1].inner:
        assert found[-1].inner[0].startswith("python")


@pytest.mark.parametrize("text", TOLD)
def test_what_works_there_and_what_not_is_told(text: str) -> None:
    told = place_told(spec(text))
    assert told is not None
    assert TOLD[text] in "; ".join((told.works, *(f"{problem}; {remedy}" for problem, remedy in told.problems)))


@pytest.mark.parametrize("option", ["--gpus device=2", "--gpus '\"device=2,3\"'", "--device nvidia.com/gpu=2"])
def test_gpus_that_the_command_gives_a_container_are_not_chosen_again_by_their_number_outside(option: str) -> None:
    argv = tuple(shlex.split(f"docker run {option} img python t.py"))
    made = marked(argv, Path("/a"), {"CUDA_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "2"})
    assert "CUDA_VISIBLE_DEVICES" not in made


@pytest.mark.parametrize(
    "text", ["python t.py", "nice -n 5 python t.py", "docker run -d img", "tmux new -d python t.py"]
)
def test_nothing_is_told_about_a_trainer_here_or_one_that_is_handed_on(text: str) -> None:
    assert place_told(spec(text)) is None


def test_the_label_stands_before_the_users_own_options_and_the_gpus_reach_the_inside() -> None:
    argv = tuple(shlex.split("docker --context g run --rm img python t.py"))
    made = marked(argv, Path("/a"), {"CUDA_VISIBLE_DEVICES": "2", "HOME": "/root"}, {"HOME": "/root"})
    assert made[:6] == ("docker", "--context", "g", "run", "--label", f"{LABEL}=/a")
    assert made[-4:] == ("--rm", "img", "python", "t.py")
    given = [made[at + 1] for at, word in enumerate(made) if word == "-e"]
    assert given == ["TRAINWATCH_ATTEMPT", "PYTHONUNBUFFERED", "CUDA_VISIBLE_DEVICES"]
    assert marked(("python", "t.py"), Path("/a"), {}, {}) == ("python", "t.py")


def test_the_engine_is_asked_as_the_user_that_started_the_container() -> None:
    found = container_layer(tuple(shlex.split("sudo -u ops docker run img python t.py")))
    assert found is not None
    assert found[1] == ("sudo", "-u", "ops", "-n", "docker")
    composed = container_layer(tuple(shlex.split("docker compose -f c.yml run train python t.py")))
    assert composed is not None
    assert composed[1] == ("docker",)
    assert container_layer(("ssh", "host", "docker", "run", "img")) is None
