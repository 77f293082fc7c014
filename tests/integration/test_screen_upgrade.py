"""trainwatch's files are replaced while its screen is open: what is loaded later no longer fits what is loaded."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.fakes.old_release import PACKAGES, ROOT, environment_of
from tests.fakes.tmux_terminal import NO_TMUX, terminal

pytestmark = [NO_TMUX, pytest.mark.tmux]

HELP = Path("tui", "dialogs", "cards.py")
KEYS = Path("tui", "keys.py")
OF_HELP = ("╭─ Keys ", "[Esc] close")


def installed(folder: Path) -> Path:
    """A copy of this version, as a folder for PYTHONPATH."""
    package = folder / "trainwatch"
    shutil.copytree(ROOT / "src" / "trainwatch", package, ignore=shutil.ignore_patterns(*PACKAGES))
    for part in PACKAGES:
        shutil.copytree(ROOT / part, package / part)
    return folder


def replace(file: Path, text: str) -> None:
    """As an installer does: another file under the same name."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def opened(tmp_path: Path, place: Path) -> dict[str, str]:
    (tmp_path / "project").mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TRAINWATCH")}
    return kept | {"TRAINWATCH_HOME": str(tmp_path / "home"), **environment_of(place)}


def test_screen_that_fails_because_its_files_were_replaced_is_opened_anew(tmp_path: Path) -> None:
    place = installed(tmp_path / "place")
    package = place / "trainwatch"
    with terminal((100, 30), tmp_path, opened(tmp_path, place)) as person:
        person.trainwatch()
        person.see("? help")
        replace(package / KEYS, f"{(package / KEYS).read_text()}\nADDED = 1\n")
        replace(package / HELP, f"{(package / HELP).read_text()}\nfrom ..keys import ADDED\n")
        person.press("?")
        person.until(lambda text: "? help" not in text, "the screen ends")
        person.press_until("?", *OF_HELP)
        assert "ImportError" not in person.text


def test_screen_that_fails_for_another_reason_says_so_with_its_exit_code(tmp_path: Path) -> None:
    place = installed(tmp_path / "place")
    help_ = place / "trainwatch" / HELP
    help_.write_text(f"{help_.read_text()}\nfrom ..keys import NEVER_THERE\n")
    with terminal((100, 30), tmp_path, opened(tmp_path, place)) as person:
        person.run(f"{sys.executable} -m trainwatch; echo it ended with $?")
        person.see("? help")
        person.press("?")
        person.see("ImportError", "it ended with 1")
