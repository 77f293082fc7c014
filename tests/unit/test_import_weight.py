"""What each path loads: the headless path no screen, the judge nothing that could do I/O, start-up no heavy library."""

import subprocess
import sys
from pathlib import Path

import pytest

from trainwatch.core.model.fact import RunCreated
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory, run_id_for


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    return set(done.stderr.splitlines()[-1].split())


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_looking_after_a_run_loads_no_screen_and_nothing_heavy() -> None:
    modules = loaded_by("import trainwatch.core.app.foreground")
    assert not roots(modules) & {
        "textual",
        "rich",
        "numpy",
        "torch",
        "libtmux",
        "ruamel",
        "tomlkit",
        "psutil",
    }
    assert not modules & {"urllib.request", "http.client", "ssl", "email", "statistics"}, "half a megabyte to two each"
    for_few_runs = {"configparser", "difflib", "fractions", "hmac", "pickletools", "random", "secrets", "tempfile"}
    assert not modules & for_few_runs
    rooms = ("act.slurm.", "app.queue", "app.export", "act.evidence.stack_probe", "checkpoints.formats.torch_")
    assert not {name for name in modules if name.startswith(tuple(f"trainwatch.core.{room}" for room in rooms))}
    assert not any(name.startswith("trainwatch.tui") for name in modules)


def test_the_first_picture_of_the_screen_loads_no_reader_of_checkpoints_and_no_page() -> None:
    modules = loaded_by("import trainwatch.cli.bare_command, trainwatch.tui.app")
    assert not {name for name in modules if name.startswith("trainwatch.core.checkpoints")}
    assert not modules & {"ctypes", "pickletools", "statistics", "numpy", "xml.sax", "http.client", "email"}
    pages = {name for name in modules if name.startswith("trainwatch.tui.screens.") and name.endswith("_screen")}
    assert {name.rpartition(".")[2] for name in pages} <= {"dashboard_screen", "pane_screen"}


NOT_FOR_AN_EMPTY_DASHBOARD = {
    "trainwatch.core": {"act", "checkpoints", "source"},
    "trainwatch.core.app": {"hosts", "plan", "preflight", "start", "screen.folder_launcher", "runs.supervisor_life"},
    "trainwatch.core.model": {"decision", "machine_details", "story_fold"},
    "trainwatch.core.sense": {"log", "process"},
    "trainwatch.core.store": {"control_client", "control_server", "journal", "log_index"},
    "trainwatch.core.views.screens": {"checkpoint_details", "run_list"},
    "trainwatch.tui": {"dialogs", "palette", "screens.place_screen"},
    "trainwatch.tui.panes": {"rows_pane"},
}  # fmt: skip
"""What plans a launch, what reads a run, what a key opens: loaded when it is used, not before the first picture."""


@pytest.mark.parametrize("file", ["", "[run]\nname = 'r'\ncommand = ['true']\n"])
def test_a_dashboard_is_composed_without_what_reads_its_run_or_answers_its_keys(one_run: Path, file: str) -> None:
    folder = one_run.parent
    if file:
        (folder / "trainwatch.toml").write_text(file)
        (one_run / "runs" / "r-1").rename(one_run / "runs" / run_id_for("r", folder / "trainwatch.toml"))
    (run,) = (one_run / "runs").iterdir()
    with SupervisorLock(RunDirectory(run).lock):
        modules = loaded_by(
            f"import os; os.environ['TRAINWATCH_HOME'] = {str(one_run)!r}; os.chdir({str(folder)!r})\n"
            "from trainwatch.cli import command_line, bare_command\n"
            "from trainwatch.tui.ui import terminal\n"
            "terminal.can_show_screen = lambda: True\n"
            "def show(app): assert len(list(app.get_default_screen().compose())) == 8; return 0\n"
            "bare_command.show = show\n"
            "assert command_line.run_verb([]) == 0"
        )
    kept_out = {f"{package}.{name}" for package, names in NOT_FOR_AN_EMPTY_DASHBOARD.items() for name in names}
    assert not {name for name in modules if any(name == out or name.startswith(f"{out}.") for out in kept_out)}
    assert not modules & {"json", "sqlite3", "ctypes"}


def test_the_interpreter_of_the_screen_is_as_it_is(one_run: Path) -> None:
    statement = (
        f"import os; os.environ['TRAINWATCH_HOME'] = {str(one_run)!r}; import gc\n"
        "pace = gc.get_threshold()\n"
        "import trainwatch.tui.app, trainwatch.cli.bare_command, asyncio.sslproto, types\n"
        "assert type(asyncio.sslproto.ssl) is types.ModuleType and asyncio.sslproto.ssl.create_default_context\n"
        "assert gc.isenabled() and gc.get_threshold() == pace and gc.get_freeze_count() == 0\n"
        "assert not [name for name, it in sys.modules.items() if type(it).__module__.startswith('trainwatch')]"
    )
    loaded_by(statement)


def test_the_runner_is_made_of_the_standard_library() -> None:
    modules = loaded_by("import trainwatch.core.act.launch.runner")
    assert not modules & {"socket", "subprocess", "pathlib"}, "half a megabyte and more each"
    foreign = {n for n in roots(modules) - {"trainwatch"} if n not in sys.stdlib_module_names and not n.startswith("_")}
    assert foreign <= {"sitecustomize", "usercustomize"}
    ours = {n for n in modules if n.startswith(("trainwatch.core.model.", "trainwatch.core.judge"))}
    table = "trainwatch.core.model.checkpoint_suffixes"
    assert ours <= {table, table.rpartition(".")[0]}, "a table without imports"


@pytest.mark.parametrize("package", ["trainwatch.core.judge", "trainwatch.core.model.story"])
def test_pure_packages_load_no_package_that_does_io(package: str) -> None:
    # Judged by their own import statements (import contracts); here: that none imports another package.
    modules = loaded_by(f"import {package}")
    rooms = {n.split(".")[2] for n in modules if n.startswith("trainwatch.core.")}
    assert rooms <= {"judge", "model"}


SLOW = {"asyncio", "ctypes", "gzip", "secrets", "socket", "subprocess", "tempfile"}
"""Modules of Python that take a millisecond or more."""
HEAVY = {"libtmux", "numpy", "psutil", "textual", "tomlkit"}


def loaded_by_call(*calls: str, home: Path) -> set[str]:
    """What calls of trainwatch load together, in a process of their own."""
    return loaded_by(
        f"import os; os.environ['TRAINWATCH_HOME'] = {str(home)!r}; os.chdir({str(home.parent)!r})\n"
        "from trainwatch.cli import main\n"
        f"for call in {calls!r}:\n"
        "    try: main(call.split())\n"
        "    except SystemExit: pass"
    )


def ours(modules: set[str]) -> set[str]:
    """Modules of trainwatch beside the command line."""
    return {name for name in modules if name.startswith("trainwatch.") and not name.startswith("trainwatch.cli")}


@pytest.fixture
def one_run(tmp_path: Path) -> Path:
    """A state folder with one run."""
    spec = RunSpec(id="r-1", name="r", command=("true",), cwd=str(tmp_path), created_wall=0.0)
    run = RunDirectory.create(tmp_path / "home", spec)
    with JournalWriter(run.journal) as journal:
        journal.append_all(0.0, 0.0, (RunCreated(run="r-1", name="r", command=("true",), cwd="/", preset="generic"),))
    return tmp_path / "home"


def test_the_list_of_verbs_loads_nothing_that_a_verb_needs_to_act(tmp_path: Path) -> None:
    modules = loaded_by_call("--help", home=tmp_path)
    assert not roots(modules) & (SLOW | HEAVY | {"msgspec", "sqlite3", "tomllib"})
    assert {n for n in ours(modules) if not n.startswith("trainwatch.core.model.")} == {
        "trainwatch.core",
        "trainwatch.core.app",
        "trainwatch.core.app.errors",
        "trainwatch.core.model",
    }


def test_a_verb_that_only_reads_loads_neither_the_judge_nor_the_launching(one_run: Path) -> None:
    verbs = ("status", "status --json", "runs", "runs --json", "events", "logs", "checkpoints list .", "status --help")
    modules = loaded_by_call(*verbs, home=one_run)
    assert not roots(modules) & (SLOW | HEAVY | {"tomllib"})
    assert not {name for name in modules if name.startswith(("trainwatch.core.judge", "trainwatch.tui"))}
    assert not modules & {"trainwatch.core.act.launch.launching", "trainwatch.cli.start", "trainwatch.cli.bare_command"}
    assert not modules & {"select", "signal", "sqlite3", "threading"}, "one_run has no history, and nothing waits"


def test_showing_a_run_in_tmux_loads_libtmux_only_in_a_child_process() -> None:
    modules = loaded_by("import trainwatch.core.act.view.tmux, trainwatch.core.act.view.tmux")
    assert "libtmux" not in roots(modules)
