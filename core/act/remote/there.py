"""The command that ssh runs on the other machine: finds trainwatch there and runs it with the words as they are.

The words are quoted for a POSIX shell and sent as base64, so the login shell there (bash, zsh, fish, csh) need not
understand them: what it parses is one word in single quotes without any character that is special to these shells.
"""

import base64
import shlex
from collections.abc import Mapping, Sequence

from ...model.host import Host

MARK = "\x1etrainwatch "
"""Begins the line that is printed before trainwatch's own output. Output before it comes from the shell's start-up
files."""
MISSING, NO_FOLDER = 127, 126
OWN_COPY = "${XDG_DATA_HOME:-$HOME/.local/share}/trainwatch/from-another-host"
"""Folder there for the copy that ``trainwatch hosts install`` puts there; in words of a shell."""
_FIND = f"""
found=
for each in "{OWN_COPY}/venv/bin/trainwatch" "$(command -v trainwatch)" "$HOME/.local/bin/trainwatch"; do
  if [ -z "$found" ] && [ -x "$each" ]; then found=$each; fi
done
"""
_PYTHON = """
python=
for each in python3 python3.14 python3.13 python3.12 python3.11; do
  if [ -z "$python" ] && "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(command -v "$each")
  fi
done
"""


def command_there(host: Host, words: Sequence[str], *, terminal: Mapping[str, str] | None = None) -> str:
    """The command for ssh. A line with MARK and the version there comes first on standard output.

    ``terminal``: it runs on a terminal, without that line; these variables describe the terminal. Exit status MISSING:
    no trainwatch there; NO_FOLDER: the host's folder is not there.
    """
    marked = terminal is None
    folder = f"cd -- {_path(host.folder)} || exit {NO_FOLDER}\n" if host.folder else ""
    if host.command:
        find, call = "", host.command
    else:
        nothing = f"printf '{_escaped(MARK)}\\n'\n" if marked else ""
        find = f'{_FIND}if [ -z "$found" ]; then\n{nothing}exit {MISSING}\nfi\n'
        call = '"$found"'
    told = f"printf '{_escaped(MARK)}%s\\n' \"$({call} --version 2>/dev/null </dev/null)\"\n" if marked else ""
    told_there = {"TRAINWATCH_ON": host.name, **(terminal or {})}
    named = "".join(f"{name}={shlex.quote(value)}\nexport {name}\n" for name, value in told_there.items())
    return in_any_shell(f"{named}{folder}{find}{told}exec {call} {shlex.join(words)}")


def in_any_shell(script: str) -> str:
    """A script for sh as a command that every login shell passes on unchanged."""
    packed = base64.b64encode(script.encode("utf-8", "surrogateescape")).decode()
    return f"exec sh -c 'eval \"$(printf %s {packed} | base64 -d)\"' trainwatch"


def look_there(host: Host) -> str:
    """A command that prints a line with MARK, then ``version=``, ``path=`` and ``python=`` lines."""
    if host.command:
        find = f"found={shlex.quote(host.command)}\nversion=$({host.command} --version 2>/dev/null </dev/null)\n"
    else:
        find = f'{_FIND}version=\nif [ -n "$found" ]; then version=$("$found" --version 2>/dev/null </dev/null); fi\n'
    return in_any_shell(
        f"{find}{_PYTHON}printf '{_escaped(MARK)}\\nversion=%s\\npath=%s\\npython=%s\\n' "
        '"$version" "$found" "$python"'
    )


def unpack_there_script(wheel: str, version: str, codes: tuple[int, int, int]) -> str:
    """A script that installs the wheel on its standard input into a new environment below OWN_COPY.

    The environment in use is replaced at the end, by switching a link: an installation that fails changes nothing, and
    processes that use the previous environment go on. ``codes``: exit status without venv, of a failed pip, of a folder
    that cannot be written.
    """
    no_venv, no_pip, no_room = codes
    return f"""umask 077
{_PYTHON}
own="{OWN_COPY}"
new="$own/venv-{version}-$$"
mkdir -p "$own" && cat > "$own/{wheel}" || exit {no_room}
"$python" -m venv "$new" >&2 || {{ rm -rf "$new"; exit {no_venv}; }}
quiet="--quiet --disable-pip-version-check"
"$new/bin/python" -m pip install $quiet "$own/{wheel}" >&2 || {{ rm -rf "$new"; exit {no_pip}; }}
"$new/bin/trainwatch" --version >&2 || {{ rm -rf "$new"; exit 1; }}
rm -f "$own/{wheel}"
ln -s "$new" "$own/venv.$$" && mv -T "$own/venv.$$" "$own/venv"
"""


def remove_there_script() -> str:
    """A script that removes what ``unpack_there_script`` made, and nothing else."""
    return f'rm -rf -- "{OWN_COPY}"'


def _escaped(text: str) -> str:
    return text.replace("\x1e", "\\036")


def _path(folder: str) -> str:
    """A path as a word of a shell; ``~/`` at its beginning is the home folder there."""
    if folder == "~":
        return '"$HOME"'
    if folder.startswith("~/"):
        return f'"$HOME"/{shlex.quote(folder[2:])}'
    return shlex.quote(folder)
