#!/bin/sh
# Sets up whatever is missing, then does one thing. Safe to call again and again; needs no activation.
#
#   ./trainwatch.sh demo [OPTIONS]    a real small training with scripted trouble, on the screen (about a minute)
#   ./trainwatch.sh test [PYTEST…]    the whole test suite, PyTorch part included
#   ./trainwatch.sh check             format, lint, types, import contracts, then the tests: what CI runs
#   ./trainwatch.sh setup [--dev]     only set up: .venv (and the developers' tools with --dev)
#   ./trainwatch.sh clean             remove .venv and caches (never a run's state, never your files)
#   ./trainwatch.sh run … | status …  any other verb goes to the trainwatch command itself
#
# Environment: TRAINWATCH_TORCH (default torch==2.13.0) is the PyTorch that the tests install when none is importable.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
venv=$here/.venv
python=$venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "trainwatch.sh: $*" >&2; }
die() { say "$*"; exit 1; }

usage() { sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else return 1
    fi
}

apt_updated=no
install_packages() { # system packages by whichever package manager there is
    if command -v apt-get >/dev/null 2>&1; then
        if [ "$apt_updated" = no ]; then as_root apt-get update -qq >/dev/null || return 1; apt_updated=yes; fi
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    elif command -v dnf >/dev/null 2>&1; then as_root dnf install -y -q "$@" >/dev/null
    elif command -v brew >/dev/null 2>&1; then brew install -q "$@" >/dev/null
    else return 1
    fi
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
complete() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

find_python() { # prints the first Python >= 3.11 that can make a virtual environment
    for name in python3.13 python3.12 python3.11 python3 python3.14 python; do
        candidate=$(command -v "$name" 2>/dev/null) || continue
        if new_enough "$candidate" && complete "$candidate"; then printf '%s\n' "$candidate"; return 0; fi
    done
    return 1
}

need_python() {
    base=$(find_python) && return 0
    say "no Python 3.11 or newer with venv found; installing one"
    if command -v dnf >/dev/null 2>&1 || command -v brew >/dev/null 2>&1; then
        install_packages python3.12 || install_packages python3 || true
    else
        install_packages python3 python3-venv || true
        find_python >/dev/null || install_packages python3.12 python3.12-venv || install_packages python3.11 python3.11-venv || true
    fi
    base=$(find_python) || die "Python 3.11 or newer is needed: install it (Debian, Ubuntu: apt install python3 python3-venv) and call again"
}

need_tmux() {
    command -v tmux >/dev/null 2>&1 && return 0
    say "installing tmux"
    install_packages tmux || say "tmux could not be installed; everything works without it but the tmux window (apt install tmux)"
}

repair_links() { # a clone without symbolic links leaves small text files in their place
    for name in core tui configs; do
        link=$here/src/trainwatch/$name
        [ -d "$link" ] && continue
        rm -f "$link"
        ln -s "../../$name" "$link" || die "cannot link $link to ../../$name: does this file system know symbolic links?"
        say "repaired the link src/trainwatch/$name"
    done
}

# A stamp says for which pyproject.toml, place and Python an environment was made; the second call only compares it.
want_stamp() { printf '%s %s\n' "$(cksum <"$here/pyproject.toml")" "$here"; }
stamped() { [ -x "$python" ] && [ -f "$venv/.$1" ] && [ "$(cat "$venv/.$1")" = "$(want_stamp)" ]; }
stamp() { want_stamp >"$venv/.$1"; }

setup_base() {
    repair_links
    stamped base && return 0
    need_python
    if [ ! -x "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
        say "creating .venv with $base"
        "$base" -m venv --clear "$venv"
    fi
    say "installing trainwatch into .venv"
    "$python" -m pip install -q --upgrade 'pip>=25.1' || die "pip could not be upgraded: is a package index reachable?"
    "$python" -m pip install -q -e "$here" || die "the install failed: see pip's lines above"
    stamp base
}

setup_dev() {
    setup_base
    stamped dev && return 0
    say "installing the developers' tools into .venv"
    (cd "$here" && "$python" -m pip install -q --group dev) || die "the install failed: see pip's lines above"
    stamp dev
}

has_torch() { "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; }

setup_torch() {
    has_torch && return 0
    pin=${TRAINWATCH_TORCH:-torch==2.13.0}
    # The environment's own Python may have one already: use it from there rather than download it again.
    if [ -z "${TRAINWATCH_TORCH:-}" ]; then
        home=$("$python" -c 'import sys; print(sys._base_executable)')
        found=$("$home" -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)' 2>/dev/null || true)
        if [ -n "$found" ]; then
            printf '%s\n' "$found" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz_torch_of_base_python.pth"
            has_torch && return 0
        fi
    fi
    if [ -t 0 ] && "$python" -m pip install -q --dry-run --report - "$pin" 2>/dev/null | grep -qE '"name": "(nvidia|cuda)[-_]'; then
        printf 'The PyTorch tests need %s; its build for CUDA is a download of several GB. Install it? [y/N] ' "$pin" >&2
        read -r answer
        case $answer in [yY]*) ;; *) die "no PyTorch: set TRAINWATCH_TORCH to a build of your choice, or install torch into .venv" ;; esac
    fi
    say "installing $pin into .venv"
    "$python" -m pip install -q "$pin" || die "PyTorch could not be installed: set TRAINWATCH_TORCH to another build"
}

run_tests() {
    setup_dev
    setup_torch
    need_tmux
    cd "$here"
    if [ "$#" -eq 0 ]; then set -- -n 2; fi
    "$python" -m pytest "$@"
}

run_check() {
    setup_dev
    cd "$here"
    say "format"; "$python" -m ruff format --check .
    say "lint"; "$python" -m ruff check .
    say "types"; setup_torch; "$python" -m mypy
    say "import contracts"; "$venv/bin/lint-imports" --no-cache
    say "tests"; run_tests
}

verb=${1:-help}
[ "$#" -gt 0 ] && shift
case $verb in
    demo)
        setup_base
        need_tmux
        for option in "$@"; do [ "$option" = --torch ] && setup_torch; done
        exec "$venv/bin/trainwatch" demo "$@"
        ;;
    test) run_tests "$@" ;;
    check) run_check ;;
    setup)
        setup_base
        need_tmux
        [ "${1:-}" = --dev ] && { setup_dev; setup_torch; }
        say "ready: $venv/bin/trainwatch"
        ;;
    clean)
        rm -rf "$venv" "$here/.mypy_cache" "$here/.ruff_cache" "$here/.pytest_cache" "$here/.hypothesis" "$here/.import_linter_cache"
        find "$here" -name __pycache__ -type d -prune -exec rm -rf {} +
        ;;
    help | -h | --help) usage ;;
    *)
        setup_base
        exec "$venv/bin/trainwatch" "$verb" "$@"
        ;;
esac
