#!/bin/sh
# Sets up whatever is missing, then does one thing. Safe to call again and again; needs no activation.
#
#   ./trainwatch.sh demo [OPTIONS]    a real small training with scripted trouble, on the screen (about a minute)
#   ./trainwatch.sh test [PYTEST…]    the test suite, PyTorch part included
#   ./trainwatch.sh test --all        the same and the slow ones: every fault in every framework … (minutes longer)
#   ./trainwatch.sh check             format, lint, types, import contracts, then the tests: what CI runs
#   ./trainwatch.sh docs              the documentation as a site, in build/site; fails on a broken link
#   ./trainwatch.sh frameworks [ROW…] real frameworks, installed and trained tiny, with faults (--help; hours for all)
#   ./trainwatch.sh hangs [--adapter] the hang benchmark (bench/hangs/README.md): 20 minutes
#   ./trainwatch.sh slurm             install Slurm's daemons, and test against a cluster of two nodes on this machine
#   ./trainwatch.sh setup [--dev]     only set up: .venv (and the developers' tools with --dev)
#   ./trainwatch.sh release VERSION   version, changelog, tag, wheel, sdist, offline bundle; publishes nothing
#   ./trainwatch.sh clean             remove .venv and caches (never a run's state, never your files)
#   ./trainwatch.sh run … | status …  any other verb goes to the trainwatch command itself
#
# Environment: TRAINWATCH_TORCH (default torch==2.13.0) is the PyTorch that the tests install when none is importable.
set -eu

say() { printf '%s\n' "trainwatch.sh: $*" >&2; }
die() { say "$*"; exit 1; }

(: <&0) 2>/dev/null || exec </dev/null # a closed standard input would hand its number to the next file opened

checkout_of() { # the real folder of this script, also when it was called through links
    file=$1
    while [ -L "$file" ]; do
        target=$(readlink "$file")
        case $target in
            /*) file=$target ;;
            *) file=$(dirname -- "$file")/$target ;;
        esac
    done
    CDPATH='' cd -- "$(dirname -- "$file")" && pwd -P
}

here=$(checkout_of "$0")
venv=$here/.venv
python=$venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1

usage() { sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$here/trainwatch.sh"; }

# --- system packages ---------------------------------------------------------------------------------------------

quietly() { # a package manager's chatter is shown only when it failed, and then its end
    said=$("$@" 2>&1) || { printf '%s\n' "$said" | tail -n 5 >&2; return 1; }
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        printf '%s\n' "you are not root and there is no sudo"
        return 1
    fi
}

apt_updated=no
install_packages() { # by whichever package manager there is
    if command -v apt-get >/dev/null 2>&1; then
        if [ "$apt_updated" = no ]; then
            quietly as_root apt-get update -qq || return 1
            apt_updated=yes
        fi
        quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
    elif command -v dnf >/dev/null 2>&1; then
        quietly as_root dnf install -y -q "$@"
    elif command -v brew >/dev/null 2>&1; then
        quietly brew install -q "$@"
    else
        say "no apt-get, dnf or brew here to install $*"
        return 1
    fi
}

# --- Python ------------------------------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
makes_venvs() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; } # Debian keeps ensurepip in python3-venv

find_python() { # prints the first Python >= 3.11 that can make a virtual environment
    for name in python3.13 python3.12 python3.11 python3 python3.14 python; do
        candidate=$(command -v "$name" 2>/dev/null) || continue
        if new_enough "$candidate" && makes_venvs "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

install_python() {
    if command -v apt-get >/dev/null 2>&1; then
        install_packages python3 python3-venv || return 1
        find_python >/dev/null && return 0
        for version in 3.13 3.12 3.11; do # an older release may have a newer Python beside its own
            if apt-cache show "python$version-venv" >/dev/null 2>&1; then
                install_packages "python$version" "python$version-venv"
                return
            fi
        done
        return 1
    fi
    install_packages python3.12 || install_packages python3
}

need_python() {
    base=$(find_python) && return 0
    say "no Python 3.11 or newer that can make virtual environments; installing one"
    install_python || true
    base=$(find_python) ||
        die "Python 3.11 or newer is needed: install it (Debian, Ubuntu: apt install python3 python3-venv) and call again"
}

need_tmux() {
    command -v tmux >/dev/null 2>&1 && return 0
    say "installing tmux"
    install_packages tmux || say "tmux could not be installed; all works without it but the tmux window (apt install tmux)"
}

need_compiler() { # the tests build a stand-in for the GPU driver's library
    command -v cc >/dev/null 2>&1 && return 0
    say "installing a C compiler for the tests"
    if command -v apt-get >/dev/null 2>&1; then set -- gcc libc6-dev; else set -- gcc; fi
    install_packages "$@" || say "no C compiler: the tests against a stand-in for the GPU driver are skipped"
}

# --- this checkout -----------------------------------------------------------------------------------------------

repair_links() { # a clone without symbolic links leaves small text files in their place
    for name in core tui configs; do
        link=$here/src/trainwatch/$name
        [ -d "$link" ] && continue
        if [ -e "$link" ] && [ "$(cat "$link")" != "../../$name" ]; then
            die "$link should be a link to ../../$name and is something else: move it away and call again"
        fi
        { ln -s "../../$name" "$link.new" && mv -f "$link.new" "$link"; } ||
            die "cannot link $link to ../../$name: clone onto a Linux file system (on WSL2: below your home, not /mnt/c)"
        say "repaired the link src/trainwatch/$name"
    done
}

one_at_a_time() { # held on file descriptor 9 until `let_others`; where flock is missing or not supported, nobody waits
    command -v flock >/dev/null 2>&1 || return 0
    exec 9<"$here/pyproject.toml"
    flock -n 9 2>/dev/null || {
        [ "$?" -eq 1 ] || return 0 # 1: somebody has it; anything else: this file system has no locks
        say "another trainwatch.sh sets up this checkout; waiting for it"
        flock 9
    }
}

let_others() { exec 9<&-; } # also so that no training inherits the lock

# A stamp says for which place and which packages an environment was made; the second call only compares it.
# The tools' own settings (ruff, mypy …) do not count: editing them must not ask for a network.
wanted() {
    awk '/^\[/ { counts = !/^\[+tool\.(ruff|mypy|pytest|importlinter|coverage)/ } counts' "$here/pyproject.toml" | cksum
    printf '%s\n' "$here"
}
stamped() { [ -f "$venv/.$1" ] && [ "$(cat "$venv/.$1")" = "$(wanted)" ]; }
stamp() { wanted >"$venv/.$1"; }

works() { [ -x "$python" ] && "$python" -c 'import msgspec, trainwatch' >/dev/null 2>&1; }

pip() { # whatever the user's own settings say about where to install to
    (
        unset PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV PYTHONHOME PYTHONPATH
        cd "$here" && exec "$python" -m pip "$@"
    )
}

pip_failed="see pip's lines above; is a package index reachable? (proxy, pip config list) Nothing is lost: call again"

running_from_venv() { # the pids of processes that run from .venv, such as the supervisor of a training
    # The path comes by a file, else grep would find itself.
    printf '%s\n' "$venv/bin/" | grep -lsF -f - /proc/[0-9]*/cmdline | sed 's|^/proc/||; s|/cmdline$||'
}

require_unused() { # $1: what is not done else
    pids=$(running_from_venv) || true
    # shellcheck disable=SC2086  # one line of pids
    [ -z "$pids" ] || die "$1: processes run from $venv and may look after a training (pid" $pids"); call again after them"
}

require_writable() {
    for folder in "$venv" "$venv/bin"; do
        [ ! -e "$folder" ] || [ -w "$folder" ] ||
            die "cannot write to $folder, and nothing in it is changed: call as its owner, or make a clone of your own"
    done
}

make_venv() { # an environment that we did not make is put aside, never cleared; one that is in use stays
    require_unused ".venv does not work and is not made anew"
    if [ -e "$venv" ] && [ ! -f "$venv/.made-by-trainwatch" ]; then
        aside=$venv.before-$(date +%Y%m%d-%H%M%S)
        mv "$venv" "$aside"
        say "put the unusable .venv aside as $aside"
    fi
    rm -rf "$venv"
    mkdir "$venv" || die "cannot write to $here: call as its owner, or clone it to a place of your own"
    : >"$venv/.made-by-trainwatch"
    need_python
    say "creating .venv with $base"
    "$base" -m venv "$venv" || die "the virtual environment could not be made: see the lines above"
}

install_base() {
    require_writable
    if ! { [ -x "$python" ] && new_enough "$python" && "$python" -m pip --version >/dev/null 2>&1; }; then
        make_venv
    fi
    say "installing trainwatch into .venv"
    # isal (crc) has no wheel for every machine, and is only faster.
    pip install -q -e "$here[crc]" 2>/dev/null || pip install -q -e "$here" || die "the install failed: $pip_failed"
    # Where PYTHONDONTWRITEBYTECODE is set (as in most containers), every call would compile all that it imports.
    "$python" -m compileall -q "$here/src/trainwatch" "$here/core" "$here/tui" >/dev/null 2>&1 || true
    stamp base
}

install_dev() {
    require_writable
    say "installing the developers' tools into .venv"
    pip install -q 'pip>=25.1' || die "pip could not be renewed: $pip_failed" # the first that knows --group
    pip install -q --group dev || die "the install failed: $pip_failed"
    stamp dev
}

setup_base() {
    repair_links
    stamped base && works && return 0
    one_at_a_time
    { stamped base && works; } || install_base
    let_others
}

setup_dev() {
    setup_base
    stamped dev && return 0
    one_at_a_time
    stamped dev || install_dev
    let_others
}

install_docs() {
    require_writable
    say "installing what builds the documentation into .venv"
    pip install -q -e "$here[docs]" || die "the install failed: $pip_failed"
    stamp docs
}

setup_docs() {
    setup_base
    stamped docs && return 0
    one_at_a_time
    stamped docs || install_docs
    let_others
}

# --- PyTorch, for the tests --------------------------------------------------------------------------------------

has_torch() { stamped torch || { "$python" -c 'import torch' >/dev/null 2>&1 && stamp torch; }; }

borrow_torch() { # the Python that .venv was made with may have one: use it from there rather than download it again
    home=$("$python" -c 'import sys; print(sys._base_executable)')
    found=$("$home" -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)' 2>/dev/null) || return 1
    pth=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz_torch_of_base_python.pth
    printf '%s\n' "$found" >"$pth"
    has_torch || { rm -f "$pth"; return 1; }
}

install_torch() {
    require_writable
    pin=${TRAINWATCH_TORCH:-torch==2.13.0}
    if [ -z "${TRAINWATCH_TORCH:-}" ] && borrow_torch; then return 0; fi
    if [ -t 0 ] && pip install -q --dry-run --report - "$pin" 2>/dev/null | grep -qE '"name": "(nvidia|cuda)[-_]'; then
        printf 'The PyTorch tests need %s; its build for CUDA is a download of several GB. Install it? [y/N] ' "$pin" >&2
        read -r answer
        case $answer in
            [yY]*) ;;
            *) die "no PyTorch: set TRAINWATCH_TORCH to a build of your choice, or install torch into .venv" ;;
        esac
    fi
    say "installing $pin into .venv"
    # shellcheck disable=SC2086  # may hold options: TRAINWATCH_TORCH='torch --index-url …'
    pip install -q $pin || die "PyTorch could not be installed (set TRAINWATCH_TORCH to another build): $pip_failed"
    has_torch || die "the PyTorch that was installed cannot be imported: .venv/bin/python -c 'import torch' says why"
}

setup_torch() {
    has_torch && return 0
    one_at_a_time
    has_torch || install_torch
    let_others
}

# --- what can be asked -------------------------------------------------------------------------------------------

say_what_lacks() { # before minutes are spent
    lacks=''
    command -v tmux >/dev/null 2>&1 || lacks="$lacks, tmux"
    command -v cc >/dev/null 2>&1 || lacks="$lacks, a C compiler (cc)"
    [ "$(id -u)" -eq 0 ] || lacks="$lacks, root (to mount small disks)"
    [ -z "$lacks" ] || say "not here: ${lacks#, }; the tests that need it are skipped (-rs lists them)"
}

run_tests() {
    need_tmux
    need_compiler
    say_what_lacks
    setup_dev
    setup_torch
    cd "$here"
    # Else each worker compiles all tests again, and each process that a test starts all of trainwatch.
    unset PYTHONDONTWRITEBYTECODE
    if [ "${1:-}" = --all ]; then # the second tier: what is too slow for every change
        shift
        export TRAINWATCH_MATRIX=all
    fi
    if [ "$#" -eq 0 ]; then set -- -n 4 --dist worksteal; fi # half of their time is waiting for real processes
    "$python" -m pytest "$@"
}

failed=''
part() { # one part of the check; the others run too, so that one call shows everything
    title=$1
    shift
    say "$title"
    "$@" || failed="$failed, $title"
}

run_check() {
    setup_dev
    setup_torch
    need_tmux
    need_compiler
    cd "$here"
    part "format" "$python" -m ruff format --check .
    part "lint" "$python" -m ruff check .
    part "types" "$python" -m mypy
    part "import contracts" "$python" -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-cache
    part "tests" run_tests
    [ -z "$failed" ] || die "not passed: ${failed#, }"
    say "all passed"
}

verb=${1:-help}
[ "$#" -eq 0 ] || shift
case $verb in
    demo)
        setup_base
        need_tmux
        for option in "$@"; do
            if [ "$option" = --torch ]; then setup_torch; fi
        done
        export TRAINWATCH_SCRIPT="$0"
        exec "$venv/bin/trainwatch" demo "$@"
        ;;
    test) run_tests "$@" ;;
    check) run_check ;;
    slurm) # installs Slurm's daemons for the tests that bring up a cluster on this machine
        command -v apt-get >/dev/null 2>&1 || die "slurm: needs apt-get (Debian, Ubuntu)"
        for program in slurmctld slurmd; do
            command -v "$program" >/dev/null 2>&1 && continue
            RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive quietly as_root apt-get install -y --no-install-recommends \
                slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
            break
        done
        [ "$#" -gt 0 ] || set -- tests/integration/test_slurm.py tests/contract/test_engine.py
        TRAINWATCH_MATRIX=all run_tests "$@"
        ;;
    frameworks)
        setup_base
        exec "$python" "$here/bench/frameworks.py" "$@"
        ;;
    hangs)
        setup_base
        exec "$python" "$here/bench/hangs/run.py" "$@"
        ;;
    docs)
        setup_docs
        cd "$here"
        NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict "$@" || die "the documentation has mistakes: see the lines above"
        say "built: $here/build/site/index.html"
        ;;
    release)
        setup_dev
        exec "$python" "$here/docs/make_release.py" "$@"
        ;;
    setup)
        case ${1:-} in
            '') setup_base ;;
            --dev)
                setup_dev
                setup_torch
                ;;
            *)
                say "setup knows only --dev, not $1"
                exit 2
                ;;
        esac
        need_tmux
        say "ready: $venv/bin/trainwatch"
        ;;
    clean)
        require_unused "nothing was removed"
        rm -rf "$venv" "$here/.mypy_cache" "$here/.ruff_cache" "$here/.pytest_cache" "$here/.hypothesis" "$here/.import_linter_cache"
        find "$here" -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
        ;;
    help | -h | --help) usage ;;
    *)
        known=$here/src/trainwatch/cli/parser.py # every verb stands there in quotes; options need none
        if [ "${verb#-}" = "$verb" ] && [ -r "$known" ] && ! grep -qF "\"$verb\"" "$known"; then
            say "there is no verb \"$verb\"; see ./trainwatch.sh help"
            exit 2
        fi
        setup_base
        export TRAINWATCH_SCRIPT="$0"
        exec "$venv/bin/trainwatch" "$verb" "$@"
        ;;
esac
