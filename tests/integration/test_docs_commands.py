"""Every command of the README, the first night and docs/how-to, typed as it stands, by a reader with a fresh home.

A scene is what a reader of the page has at that place: a script, a run that trains, a stopped one. The trainings are
real ones, by stand-ins for people's scripts.
"""

import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.e2e_world import until
from tests.fakes.reader import FAKES, REPOSITORY, Reader, reader_at
from tests.fakes.services import local_service
from tests.fakes.tmux_terminal import NO_TMUX
from tests.pages import SHELL, Block, Shown, blocks
from tests.tiers import SECOND_TIER
from trainwatch.cli.parser import build_parser

DOCS = REPOSITORY / "docs"
BLOCKS = [
    block
    for block in blocks()
    if block.language in SHELL
    and (block.page.parent.name == "how-to" or block.page in (REPOSITORY / "README.md", DOCS / "first-night.md"))
]


def words_of(line: str) -> str:
    """A command line without its comment."""
    return re.sub(r"\s+#\s.*$", "", line).strip()


# --- what is not typed as it stands, and why --------------------------------------------------------------------------


class NotHere(NamedTuple):
    """``instead``: what is typed for it; None: the parser alone looks at it."""

    why: str
    instead: str | None = None


RENTED = "trainwatch run --headless --save-signal USR1 --output-dir /data/out -- python train.py --resume '{resume}'"
POWEROFF = "trainwatch run --end-by 08:00 --at-finish 'sudo poweroff' -- python train.py --config cfg.yaml"
ELSEWHERE = re.compile(r"trainwatch ((--on|hosts \w+) box1\b|runs --on all)")
NOT_HERE = {
    "./trainwatch.sh test": NotHere("is what runs this"),
    "./trainwatch.sh demo": NotHere("installs tmux; what it starts is run by test_e2e_demo", "trainwatch demo --help"),
    "./trainwatch.sh setup": NotHere("installs from the package index; test_setup_script runs it"),
    "uv tool install '.[web]'": NotHere("installs from the package index"),
    "uv tool install '.[notify]'": NotHere("installs from the package index"),
    "loginctl enable-linger $USER": NotHere("changes settings of this machine"),
    "wsl --shutdown": NotHere("is a command of Windows"),
    RENTED: NotHere(
        "is PID 1 of a container, and /data its volume; test_as_init runs it as PID 1",
        RENTED.replace("/data/out", "out").replace("--headless", "--headless --dry-run"),
    ),
    POWEROFF: NotHere("switches the machine off", POWEROFF.replace("--end-by", "--dry-run --end-by")),
}


def exception_of(command: str) -> NotHere | None:
    """Why this one is not typed as it stands, if it is not."""
    if ELSEWHERE.match(command):
        return NotHere("there is no other machine; the tests of several hosts run these verbs over ssh")
    return NOT_HERE.get(command)


# --- how a command goes on that asks, shows a screen, or ends only by a key -------------------------------------------

DIALOGUES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "trainwatch": (("train", "q"),),
    "trainwatch events -f": (("running", "C-c"),),
    "trainwatch attach": (("step ", "q"),),
    "trainwatch serve --read-only": (("http://127.0.0.1", "C-c"),),
    "trainwatch run --fresh --output-dir outputs -- python train.py --output_dir outputs": (
        ("checkpoint-", "y Enter"), ("Finished", "q"),
    ),
}  # fmt: skip
"""By command: what its screen shows, and the keys that are pressed then. All of them end with the prompt."""


# --- scenes -----------------------------------------------------------------------------------------------------------


def _sees(reader: Reader, words: str, verb: str = "events") -> None:
    until(lambda: words in reader.types(f"trainwatch {verb}").out, f"{words} in what {verb} prints")


def _nothing(_: Reader) -> None:
    pass


def _checkout(reader: Reader) -> None:
    """A folder with the ``.venv`` of the set-up."""
    (reader.project / ".venv").symlink_to(sys.prefix)


def _script(reader: Reader) -> None:
    """``train.py`` and its config."""
    reader.has_script()


def _deploy(reader: Reader) -> None:
    """Also a program for what comes after the training."""
    _script(reader)
    reader.offer(reader.project / "deploy.sh", "#!/bin/sh\n")


def _script_and_config(reader: Reader) -> None:
    """Also a ``trainwatch.toml``."""
    _script(reader)
    assert reader.types("trainwatch init -- python train.py --config cfg.yaml").code == 0


def _training(reader: Reader) -> None:
    """A run that trains and has saved ``checkpoint-500``."""
    reader.has_script(steps=100_000, save_steps=500, step_time=0.005)
    done = reader.types("trainwatch run --detach --output-dir outputs -- python train.py --config cfg.yaml")
    assert done.code == 0, done.err
    until((reader.out / "checkpoint-500").is_dir, "checkpoint-500 is saved")
    _sees(reader, ": complete")


def _stopped(reader: Reader) -> None:
    """A run that a person stopped."""
    _training(reader)
    _end(reader)


def _interrupted(reader: Reader) -> None:
    """A run of which a power cut left nothing alive; what is left to train takes seconds."""
    _training(reader)
    supervisor = int(re.search(r"supervisor (\d+) watches", reader.types("trainwatch events").out)[1])  # type: ignore[index]
    attempt = reader.attempt()
    assert attempt.runner is not None
    for pid in (supervisor, attempt.runner.pid, attempt.trainer.pid):
        os.kill(pid, signal.SIGKILL)
    newest = max(int(path.name.rpartition("-")[2]) for path in reader.out.glob("checkpoint-*"))
    reader.has_script(steps=newest + 600, save_steps=500, step_time=0.005)


def _saved(reader: Reader) -> None:
    """A folder with checkpoints of a training that trainwatch does not know, a log and a recorded trace."""
    reader.has_script(steps=600, save_steps=100, step_time=0.005)
    done = reader.types("trainwatch run --output-dir outputs -- python train.py --config cfg.yaml")
    assert done.code == 0, done.err
    shutil.copy(str(reader.attempt().log), reader.project / "train.log")
    assert reader.types("trainwatch export --trace night.jsonl").code == 0
    shutil.rmtree(reader.home)
    reader.has_script(steps=700, save_steps=100, step_time=0.005)


def _asks(reader: Reader) -> None:
    """Run ``luca`` with ``act = "ask"``, whose third incident waits for an answer."""
    reader.has_script(steps=400, save_steps=20, step_time=0.01)
    with (reader.project / "cfg.yaml").open("a") as config:
        config.write("crash_at: 50 90 130\n")
    (reader.project / "trainwatch.toml").write_text(
        '[run]\nname = "luca"\ncommand = ["python", "train.py", "--resume", "{resume}"]\noutput_dir = "outputs"\n'
        "[restart]\nbackoff_s = [0]\n"
    )
    assert reader.types("trainwatch run --detach --act ask").code == 0
    for number in (1, 2, 3):
        _sees(reader, f"--incident {number}", "status")
        if number < 3:
            assert reader.types(f"trainwatch resume luca --incident {number}").code == 0


def _kohya(reader: Reader, epochs: int = 8) -> None:
    """A kohya script with its config, and the ladder of the page."""
    shutil.copy(FAKES / "kohya_trainer.py", reader.project / "train_network.py")
    (reader.project / "c.toml").write_text(
        'output_dir = "outputs"\noutput_name = "luca"\ntrain_batch_size = 1\ngradient_accumulation_steps = 2\n'
        f"max_train_epochs = {epochs}\nsave_every_n_epochs = 1\nlearning_rate = 1e-4\nmax_data_loader_n_workers = 0\n"
        "gradient_checkpointing = false\n"
    )
    (reader.project / "trainwatch.toml").write_text(
        '[run]\nname = "luca"\npreset = "kohya"\nconfig = "c.toml"\noutput_dir = "outputs"\n'
        'command = ["accelerate", "launch", "train_network.py", "--config_file", "{config}"]\n'
        '[profiles]\nuse = "conservative"\nladder = ["conservative", "balanced", "aggressive"]\n'
    )


def _kohya_stopped(reader: Reader) -> None:
    """A kohya run that was stopped after its first checkpoint."""
    _kohya(reader, epochs=1000)
    assert reader.types("trainwatch run --detach").code == 0
    _sees(reader, ": complete")
    _end(reader)


def _kohya_saved(reader: Reader) -> None:
    """A folder with checkpoints of a kohya training."""
    _kohya_stopped(reader)
    (reader.project / "trainwatch.toml").unlink()
    shutil.rmtree(reader.home)


def _search(reader: Reader) -> None:
    """The architecture search of the page, and a run of it."""
    shutil.copy(FAKES / "search_trainer.py", reader.project / "train_search.py")
    (reader.project / "trainwatch.toml").write_text(
        '[run]\nname = "search"\ncommand = ["python", "train_search.py"]\noutput_dir = "search-out"\n'
    )


def _queue(reader: Reader) -> None:
    """Two configs."""
    _script(reader)
    for name in ("a.yaml", "b.yaml"):
        shutil.copy(reader.project / "cfg.yaml", reader.project / name)


def _rented(reader: Reader) -> None:
    """The page's trainwatch.toml, with a folder for the volume and programs of the provider that do nothing."""
    _script(reader)
    page = next(block for block in blocks() if block.page.name == "containers.md" and block.language == "toml")
    text = "\n".join(line.text for line in page.lines)
    assert "/workspace" in text
    (reader.project / "trainwatch.toml").write_text(text.replace("/workspace", str(reader.project)))
    for name in ("runpodctl", "rclone"):
        reader.offer(reader.programs / name, "#!/bin/sh\n")


def _notifier(reader: Reader) -> None:
    """The page's ``notify.py``, with the address of a server on this machine, and a run."""
    (program,) = (block for block in blocks() if block.page.name == "notifications.md" and block.language == "python")
    service = reader.keep(local_service())
    text = "\n".join(line.text for line in program.lines) + "\n"
    assert "https://ntfy.sh" in text
    reader.offer(reader.project / "notify.py", text.replace("https://ntfy.sh", f"http://{service.address}"))
    _script(reader)
    assert reader.types("trainwatch run -- python train.py").code == 0


def _end(reader: Reader) -> None:
    assert reader.types("trainwatch stop").code == 0
    until(lambda: reader.story().state == "stopped" and not reader.supervised, "stopped, and nobody watches")


class Scene(NamedTuple):
    """``apart``: the lines are alternatives, each is typed in a scene of its own; else one after the other."""

    prepare: Callable[[Reader], None]
    apart: bool = False


SCENES: Mapping[str, Scene] = {
    # README, docs/first-night.md
    "./trainwatch.sh demo": Scene(_nothing),
    "./trainwatch.sh setup": Scene(_checkout),
    "trainwatch run -- python train.py --config cfg.yaml": Scene(_script),
    "trainwatch rehearse -- python train.py --config cfg.yaml": Scene(_script),
    "trainwatch run --output-dir outputs/first -- .venv/bin/python -m trainwatch.configs.examples.char_trainer"
    " --output-dir outputs/first --steps 2000 --step-time 0.1": Scene(_checkout),
    "trainwatch init --output-dir outputs -- python train.py --config cfg.yaml": Scene(_script),
    "trainwatch status (first-night)": Scene(_training),
    "trainwatch diagnose train.log --exit-code 1": Scene(_saved),
    # docs/how-to
    "uv tool install '.[web]'": Scene(_training),
    RENTED: Scene(_script),
    "uv tool install '.[notify]'": Scene(_nothing),
    """echo '{"event": "finish", "title": "test", "body": "hello"}' | ./notify.py""": Scene(_notifier),
    "trainwatch run --act notify --output-dir outputs -- python train.py": Scene(_script),
    "trainwatch restart luca --incident 3": Scene(_asks, apart=True),
    "trainwatch trial --profile conservative --profile balanced": Scene(_kohya),
    "trainwatch trial --profile safe_mode --timeout 300 -- --epochs 5 --batch_size 16 --quiet": Scene(_search),
    "trainwatch metrics > trainwatch.new && mv trainwatch.new trainwatch.prom": Scene(_training),
    "trainwatch queue add --gpu-memory 10GB -- python train.py --config a.yaml": Scene(_queue),
    "trainwatch rehearse -- python train.py --output_dir outputs --resume '{resume}'": Scene(
        _script_and_config, apart=True
    ),
    "trainwatch resume --with gradient-checkpointing": Scene(_kohya_stopped, apart=True),
    "trainwatch status (resume)": Scene(_stopped, apart=True),
    "trainwatch resume --lr 5e-5": Scene(_stopped),
    "trainwatch run --from newest --lr 5e-5 --set max_train_epochs=6 -- accelerate launch train_network.py"
    " --config_file c.toml": Scene(_kohya_saved),
    "trainwatch --headless (resume)": Scene(_interrupted),
    "trainwatch run --from newest --output-dir outputs -- python train.py --output_dir outputs"
    " --resume '{resume}'": Scene(_saved, apart=True),
    "trainwatch checkpoints list outputs/": Scene(_saved),
    "trainwatch run --output-dir outputs -- python train.py --resume '{resume}'": Scene(_script),
    "trainwatch run --detach --output-dir outputs -- python train.py": Scene(_script),
    "trainwatch run --detach --output-dir outputs -- python train.py (scripts)": Scene(_deploy),
    "loginctl enable-linger $USER": Scene(_nothing),
    "trainwatch enable --print": Scene(_training),
    "trainwatch check (containers)": Scene(_rented),
    "trainwatch --headless (containers)": Scene(_rented),
    POWEROFF: Scene(_script),
    "trainwatch --on box1": Scene(_nothing),
    "wsl --shutdown": Scene(_nothing),
    "trainwatch init --trainbeat": Scene(_nothing),
}
"""By the first command of a block, or by a later line that is typed in a scene of its own; with the page's name if
several pages have that command."""


def parts() -> Iterator[tuple[str, tuple[Shown, ...]]]:
    """The lines that are typed in one scene, with the name of the scene."""
    for block in BLOCKS:
        yield from _parts_of(block)


def _parts_of(block: Block) -> Iterator[tuple[str, tuple[Shown, ...]]]:
    name, lines = "", list[Shown]()
    for line in block.lines:
        command = words_of(line.text)
        if not command:
            continue
        if ELSEWHERE.match(command):
            command = "trainwatch --on box1"
        found = next((key for key in (f"{command} ({block.page.stem})", command) if key in SCENES), None)
        if found is not None or not name:
            if lines:
                yield name, tuple(lines)
            name, lines = found or command, []
        lines.append(line)
    if lines:
        yield name, tuple(lines)


def tries() -> Iterator[tuple[str, tuple[Shown, ...]]]:
    """What is typed, each in a scene of its own; parts of which nothing can be typed here are left out."""
    for name, lines in parts():
        if not any(_is_typed(line) for line in lines):
            continue
        scene = SCENES.get(name)
        if scene is not None and scene.apart:
            yield from ((name, (line,)) for line in lines)
        else:
            yield name, lines


def _is_typed(line: Shown) -> bool:
    exception = exception_of(words_of(line.text))
    return exception is None or exception.instead is not None


def test_every_block_has_a_scene_and_every_scene_a_block() -> None:
    assert {name for name, _ in parts()} == set(SCENES)


def test_every_exception_is_on_a_page() -> None:
    shown = {words_of(line.text) for block in BLOCKS for line in block.lines}
    assert NOT_HERE.keys() <= shown
    assert DIALOGUES.keys() <= shown


SHOWN = {words_of(line.text): None for block in BLOCKS for line in block.lines}


@pytest.mark.parametrize("command", [key for key in SHOWN if key.startswith("trainwatch ") and exception_of(key)])
def test_what_is_not_run_here_parses(command: str) -> None:
    words = shlex.split(command)[1:]
    words = words[: words.index("--")] if "--" in words else words
    build_parser(words).parse_args(words)


@SECOND_TIER
@NO_TMUX
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "lines"), list(tries()), ids=lambda value: value if isinstance(value, str) else "")
def test_the_commands_of_a_page_do_as_they_stand(name: str, lines: tuple[Shown, ...], tmp_path: Path) -> None:
    with reader_at(tmp_path) as reader:
        SCENES[name].prepare(reader)
        for line in lines:
            command = words_of(line.text)
            exception = exception_of(command)
            if exception is not None and exception.instead is None:
                continue
            typed = line.text if exception is None else str(exception.instead)
            if command in DIALOGUES:
                _speak(reader, line, DIALOGUES[command])
                continue
            done = reader.types(typed)
            assert done.code == 0, f"{line}\nexit code {done.code}\n{done.out[-3000:]}\n{done.err[-3000:]}"


def _speak(reader: Reader, line: Shown, dialogue: tuple[tuple[str, str], ...]) -> None:
    with reader.at_terminal() as terminal:
        terminal.run(line.text)
        for words, keys in dialogue:
            terminal.see(words)
            terminal.press(*keys.split())
        code = reader.code_of(terminal)
        assert code == 0 or (code == 130 and dialogue[-1][1] == "C-c"), f"{line}: exit code {code}"


@SECOND_TIER
@NO_TMUX
@pytest.mark.timeout(600)
def test_the_first_example_with_a_script_of_ones_own_survives_kill_9(tmp_path: Path) -> None:
    line = next(line for block in BLOCKS for line in block.lines if " python train.py" in line.text)
    assert line.page.name == "README.md"
    with reader_at(tmp_path) as reader, reader.at_terminal() as terminal:
        reader.has_script(steps=100_000, save_steps=100, step_time=0.02)
        terminal.run(line.text)
        killed = reader.trainer_pid()
        until((reader.out / "checkpoint-200").is_dir, "a second checkpoint")
        os.kill(killed, signal.SIGKILL)
        reader.attempt(2)
        before = reader.highest_step(1)
        until(lambda: reader.highest_step(2) > before, "more steps than before")
        assert f"resumed from {reader.out}/checkpoint-" in reader.log(2)
        terminal.press("q")
        assert reader.code_of(terminal) == 0
        assert reader.alive(2), "the training goes on without the screen"
