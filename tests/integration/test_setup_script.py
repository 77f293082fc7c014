"""trainwatch.sh against a checkout of its own and a Python that stands in for the package index.

The stand-in answers what the script asks a real Python (`-c`, `-m venv`, `-m pip`), writes down what it was asked, and
can be told to fail. So no test needs a network, and none touches the environment that the tests run in.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "trainwatch.sh"
LINKS = ("core", "tui", "configs")

PYTHON = r"""#!/bin/sh
# arguments: those of python. $ASKED: what was asked; $PIP_FAILS: no index; $GO: pip waits until this file is there.
printf '%s|%s\n' "$0" "$*" >>"$ASKED"
case "$1 ${2:-}" in
    "-m venv")
        mkdir -p "$3/bin"
        cp "$0" "$3/bin/python"
        chmod +x "$3/bin/python"
        ;;
    "-m pip")
        case "$*" in *install*)
            if [ -n "${PIP_FAILS:-}" ]; then echo 'ERROR: no index' >&2; exit 1; fi
            until [ -z "${GO:-}" ] || [ -e "$GO" ]; do sleep 0.02; done
            cat >"$(dirname "$0")/trainwatch" <<'END'
#!/bin/sh
if [ "$1" = descriptors ]; then ls /proc/self/fd; else printf 'trainwatch was asked: %s\n' "$*"; fi
END
            chmod +x "$(dirname "$0")/trainwatch"
        ;; esac
        ;;
    "-c import msgspec"*) [ -x "$(dirname "$0")/trainwatch" ] ;;
    "-c "*) ;;
esac
"""

TOOLS = "awk cat chmod cksum cp date dirname env find flock grep id ln ls mkdir mv readlink rm sed sh sleep tail"


class Checkout:
    """A clone of nothing but what the script looks at, in a folder whose name has spaces."""

    def __init__(self, root: Path) -> None:
        self.path = root / "my checkouts" / "train watch"
        package = self.path / "src" / "trainwatch"
        package.mkdir(parents=True)
        for name in LINKS:
            (self.path / name).mkdir()
            (package / name).symlink_to(f"../../{name}")
        shutil.copy(SCRIPT, self.path)
        shutil.copy(REPOSITORY / "pyproject.toml", self.path)
        self.asked = root / "asked"
        self.bin = root / "bin"
        self.bin.mkdir()
        for tool in TOOLS.split():
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)
        self.offer("python3.11", PYTHON)
        self.offer("tmux", "#!/bin/sh\n")

    def offer(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": str(self.bin), "ASKED": str(self.asked), "HOME": str(self.path.parent)}

    def call(
        self, *words: str, by: Path | None = None, through: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """``through``: the words of a program that runs the script."""
        return subprocess.run(
            [*through, str(by or self.path / "trainwatch.sh"), *words],
            check=False,
            cwd="/",
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def questions(self, containing: str) -> list[str]:
        """What the stand-in was asked, of the lines that contain these words."""
        lines = self.asked.read_text().splitlines() if self.asked.exists() else []
        return [line for line in lines if containing in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_setup_script_parses_in_every_posix_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    posix = ["--posix"] if shell == "bash" else []
    done = subprocess.run([shell, *posix, "-n", str(SCRIPT)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_both_scripts_can_be_executed() -> None:
    assert os.access(SCRIPT, os.X_OK)
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)


def test_usage_lists_every_verb_and_installs_nothing(checkout: Checkout) -> None:
    done = checkout.call()
    assert done.returncode == 0
    for verb in ("demo", "test", "check", "setup", "clean"):
        assert f"./trainwatch.sh {verb} " in done.stdout
    assert not checkout.asked.exists()


def test_the_first_call_creates_the_environment_and_passes_arguments(checkout: Checkout) -> None:
    done = checkout.call("status", "my run")
    assert (done.returncode, done.stdout) == (0, "trainwatch was asked: status my run\n"), done.stderr
    assert (checkout.path / ".venv" / ".made-by-trainwatch").exists()


def test_the_second_call_installs_nothing_and_needs_no_index(checkout: Checkout) -> None:
    checkout.call("runs")
    checkout.asked.unlink()
    done = checkout.call("runs", PIP_FAILS="1")
    assert done.returncode == 0
    assert done.stderr == ""
    assert checkout.questions("|-m ") == []


def test_the_setup_script_works_through_symbolic_links(checkout: Checkout, tmp_path: Path) -> None:
    near = checkout.path.parent / "near link"
    near.symlink_to("train watch/trainwatch.sh")
    far = tmp_path / "far"
    far.symlink_to(near)
    done = checkout.call("runs", by=far)
    assert (done.returncode, done.stdout) == (0, "trainwatch was asked: runs\n"), done.stderr


def test_links_left_as_text_files_by_a_clone_are_repaired(checkout: Checkout) -> None:
    package = checkout.path / "src" / "trainwatch"
    (package / "core").unlink()
    (package / "core").write_text("../../core")  # what git writes with core.symlinks = false
    (package / "tui").unlink()
    (package / "configs").unlink()
    (package / "configs").symlink_to("../nowhere")
    done = checkout.call("runs")
    assert done.returncode == 0, done.stderr
    assert [(package / name).readlink() for name in LINKS] == [Path("../..") / name for name in LINKS]


def test_a_foreign_file_in_the_place_of_a_link_is_not_touched(checkout: Checkout) -> None:
    place = checkout.path / "src" / "trainwatch" / "core"
    place.unlink()
    place.write_text("my notes\n")
    done = checkout.call("runs")
    assert done.returncode == 1
    assert "move it away and call again" in done.stderr
    assert place.read_text() == "my notes\n"


def test_an_unreachable_package_index_is_reported_and_the_next_call_retries(checkout: Checkout) -> None:
    done = checkout.call("runs", PIP_FAILS="1")
    assert done.returncode == 1
    assert "is a package index reachable?" in done.stderr.splitlines()[-1]
    again = checkout.call("runs")
    assert (again.returncode, again.stdout) == (0, "trainwatch was asked: runs\n"), again.stderr


def test_an_incomplete_environment_of_the_script_is_recreated(checkout: Checkout) -> None:
    checkout.call("runs")
    (checkout.path / ".venv" / "bin" / "python").unlink()
    done = checkout.call("runs")
    assert done.returncode == 0, done.stderr
    assert len(checkout.questions("-m venv")) == 2
    assert list(checkout.path.glob(".venv.before-*")) == []


def test_a_foreign_environment_is_moved_aside_and_not_deleted(checkout: Checkout) -> None:
    (checkout.path / ".venv").mkdir()
    (checkout.path / ".venv" / "precious").write_text("mine")
    done = checkout.call("runs")
    assert done.returncode == 0, done.stderr
    (aside,) = checkout.path.glob(".venv.before-*")
    assert (aside / "precious").read_text() == "mine"


@pytest.fixture
def user_of_venv(checkout: Checkout) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs from .venv, as the supervisor of a training does."""
    checkout.call("runs")
    keeper = checkout.path / ".venv" / "bin" / "keeper"
    keeper.symlink_to(shutil.which("sleep") or "/bin/sleep")
    with subprocess.Popen([str(keeper), "600"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("verb", ["setup", "runs", "clean"])
def test_an_environment_that_a_process_runs_from_is_never_deleted(
    checkout: Checkout, user_of_venv: subprocess.Popen[bytes], verb: str
) -> None:
    (checkout.path / ".venv" / "bin" / "python").unlink()
    done = checkout.call(verb)
    assert done.returncode == 1
    assert f"may look after a training (pid {user_of_venv.pid})" in done.stderr
    assert (checkout.path / ".venv" / "bin" / "keeper").exists()
    user_of_venv.kill()
    user_of_venv.wait()
    assert checkout.call(verb).returncode == 0


@pytest.mark.parametrize("where", [".venv", ".venv/bin"])
def test_an_environment_of_somebody_else_is_left_as_it_is(where: str) -> None:
    through: list[str] = []
    if os.geteuid() == 0:  # whom no permission stops
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("needs setpriv to call as another user")
        through = [setpriv, "--reuid", "65534", "--clear-groups"]
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        Path(root).chmod(0o755)
        checkout = Checkout(Path(root))
        checkout.call("runs")
        checkout.asked.chmod(0o666)
        folder = checkout.path / where
        (folder / "precious").touch()
        (checkout.path / ".venv" / "bin" / "python").chmod(0o644)  # it does not work
        folder.chmod(0o555)
        done = checkout.call("setup", through=through)
        assert done.returncode == 1
        assert f"cannot write to {checkout.path}/.venv" in done.stderr
        assert (folder / "precious").exists()
        folder.chmod(0o755)


def test_the_tests_say_at_their_start_what_they_cannot_have(checkout: Checkout) -> None:
    (checkout.bin / "tmux").unlink()
    (checkout.bin / "id").unlink()
    checkout.offer("id", "#!/bin/sh\necho 1000\n")
    done = checkout.call("test", "tests/unit")
    assert done.returncode == 0, done.stderr
    said = "not here: tmux, a C compiler (cc), root (to mount small disks); the tests that need it are skipped"
    assert said in done.stderr
    assert done.stderr.index(said) < done.stderr.index("creating .venv"), "before minutes are spent"
    assert checkout.questions("-m pytest tests/unit")
    checkout.offer("tmux", "#!/bin/sh\n")
    checkout.offer("cc", "#!/bin/sh\n")
    checkout.offer("id", "#!/bin/sh\necho 0\n")
    assert "not here" not in checkout.call("test", "tests/unit").stderr


def test_a_moved_checkout_is_installed_again(checkout: Checkout) -> None:
    checkout.call("runs")
    checkout.asked.unlink()
    checkout.path = checkout.path.rename(checkout.path.with_name("moved"))
    done = checkout.call("runs")
    assert done.returncode == 0, done.stderr
    assert len(checkout.questions("-m pip install")) == 1
    assert checkout.questions("-m venv") == []


def test_new_dependencies_are_installed_and_new_lint_rules_are_not(checkout: Checkout) -> None:
    checkout.call("runs")
    checkout.asked.unlink()
    project = checkout.path / "pyproject.toml"
    project.write_text(project.read_text().replace("line-length = 120", "line-length = 100"))
    checkout.call("runs")
    assert checkout.questions("-m pip install") == []
    project.write_text(project.read_text().replace('"msgspec>=', '"brandnew>=1",\n  "msgspec>='))
    checkout.call("runs")
    assert len(checkout.questions("-m pip install")) == 1


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock here: nobody waits")
def test_two_concurrent_calls_install_once(checkout: Checkout, tmp_path: Path) -> None:
    go = tmp_path / "go"
    both = [
        subprocess.Popen(
            [str(checkout.path / "trainwatch.sh"), "runs"],
            env=checkout.environment | {"GO": str(go)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        told = [next(iter(call.stderr or [])) for call in both]  # the first line of each: one makes, the other waits
        assert sum("waiting for it" in line for line in told) == 1, told
        go.touch()
        answers = [call.communicate(timeout=60)[0] for call in both]
    finally:
        go.touch()
        for call in both:
            call.kill()
            call.communicate()
    assert answers == ["trainwatch was asked: runs\n"] * 2
    assert len(checkout.questions("-m venv")) == 1
    assert len(checkout.questions("-m pip install")) == 1


def test_a_training_does_not_inherit_the_setup_lock(checkout: Checkout) -> None:
    done = checkout.call("descriptors")
    assert done.returncode == 0, done.stderr
    assert {"0", "1", "2"} <= set(done.stdout.split())
    assert "9" not in done.stdout.split()


def test_without_python_and_root_the_script_says_what_to_install(checkout: Checkout) -> None:
    (checkout.bin / "python3.11").unlink()
    (checkout.bin / "id").unlink()
    checkout.offer("id", "#!/bin/sh\necho 1000\n")
    checkout.offer("apt-get", "#!/bin/sh\necho 'never reached' >&2\n")
    done = checkout.call("demo")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "you are not root and there is no sudo",
        (
            "trainwatch.sh: Python 3.11 or newer is needed: "
            "install it (Debian, Ubuntu: apt install python3 python3-venv) and call again"
        ),
    ]


def test_without_tmux_the_script_reports_it_and_continues(checkout: Checkout) -> None:
    (checkout.bin / "tmux").unlink()
    done = checkout.call("demo", "--headless")
    assert (done.returncode, done.stdout) == (0, "trainwatch was asked: demo --headless\n")
    assert "no apt-get, dnf or brew here to install tmux" in done.stderr
    assert "all works without it but the tmux window" in done.stderr


def test_package_manager_output_is_shown_only_on_failure(checkout: Checkout) -> None:
    (checkout.bin / "tmux").unlink()
    checkout.offer("sudo", '#!/bin/sh\nexec "$@"\n')
    checkout.offer("apt-get", "#!/bin/sh\necho chatter; echo more chatter >&2\n")
    done = checkout.call("setup")
    assert done.returncode == 0
    assert "chatter" not in done.stdout + done.stderr
    checkout.offer("apt-get", "#!/bin/sh\necho 'E: no such package'; exit 100\n")
    assert "E: no such package" in checkout.call("setup").stderr


def test_clean_removes_the_environment_and_caches_only(checkout: Checkout) -> None:
    checkout.call("runs")
    mine = checkout.path / "outputs" / "model.safetensors"
    mine.parent.mkdir()
    mine.write_bytes(b"weights")
    cache = checkout.path / "core" / "__pycache__"
    cache.mkdir()
    done = checkout.call("clean")
    assert done.returncode == 0, done.stderr
    assert not (checkout.path / ".venv").exists()
    assert not cache.exists()
    assert mine.read_bytes() == b"weights"


def test_a_wrong_option_of_setup_is_a_usage_error(checkout: Checkout) -> None:
    done = checkout.call("setup", "--devel")
    assert (done.returncode, done.stderr) == (2, "trainwatch.sh: setup knows only --dev, not --devel\n")
    cli = checkout.path / "src" / "trainwatch" / "cli"
    cli.mkdir()
    shutil.copy(REPOSITORY / "src" / "trainwatch" / "cli" / "parser.py", cli)
    done = checkout.call("claen")
    assert (done.returncode, 'there is no verb "claen"' in done.stderr) == (2, True)
    assert not checkout.asked.exists(), "nothing is installed for it"
