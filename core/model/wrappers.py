"""Programs that start the trainer for somebody else's process tree, user or host, and how their options are read.

``docker run … IMAGE python train.py``, ``conda run``, ``sudo``, ``ssh HOST …``, ``nice``. One table says which words of
each are options, which are its own names (an image, a host) and where the command behind it begins. Sources: the
manual pages and ``--help`` of the programs (docker 27, podman 5, conda 24, sudo 1.9, OpenSSH 9, Slurm 22.05).
"""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from .run import ProcessIdentity
from .text import LazyPattern

# The words of a command line: where the trainer's own begin, and a config file that is its only argument.

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml", ".json")
POSIX_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
"""Those whose text is read (``source/shell_text.py``)."""
SHELLS = POSIX_SHELLS | {"fish"}


def options_start(argv: Sequence[str]) -> int:
    """Index of the trainer's first own option: after its script or module, so that a launcher's are not changed."""
    for index, part in enumerate(argv):
        if part.endswith((".py", ".sh")) and not part.startswith("-"):
            return index + 1
    for index, part in enumerate(argv[:-1]):
        if part == "-m":
            return index + 2
    return min(1, len(argv))


def lone_config(argv: Sequence[str]) -> str | None:
    """The trainer's config file, if it is its only argument (``train.py cfg.yaml``, ``trainer train cfg.yaml``).

    Then the trainer takes no option beside it: HfArgumentParser reads a file only when nothing else is given.
    """
    own = list(argv[options_start(argv) :])
    if not own or any(word.startswith("-") or "=" in word for word in own):
        return None
    subcommands, last = own[:-1], own[-1]
    if len(subcommands) > 1 or not all(word.isidentifier() for word in subcommands):
        return None
    return last if last.lower().endswith(CONFIG_SUFFIXES) else None


def hides_trainer(argv: Sequence[str]) -> bool:
    """Whether a shell starts the trainer, so that its own options cannot be seen: ``bash train.sh``, ``sh -c "…"``."""
    start = options_start(argv)
    program = argv[0].rpartition("/")[2] if argv else ""
    return program in SHELLS or (0 < start <= len(argv) and argv[start - 1].endswith(".sh"))


def end_of_word(text: str, word: str) -> int | None:
    """Where the word of a shell text ends outside comments; None if it is not there exactly once."""
    found = re.compile(rf"(?<![\w./-])(['\"]?){re.escape(word)}\1(?=[\s;&|)]|$)")
    ends = [m.end() for m in found.finditer(text) if "#" not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()]]
    return ends[0] if len(ends) == 1 else None


Kind = Literal[
    "plain", "user", "environment", "container", "in_container", "service", "services", "host", "pod", "step"
]
"""``plain``: same user, same process tree (nice). ``user``: another user (sudo). ``environment``: conda run.
``container``: docker run. ``in_container``: docker exec. ``service``: compose run. ``services``: compose up. ``host``:
ssh. ``pod``: kubectl exec. ``step``: srun."""

_ASSIGNMENT = LazyPattern(r"(?s)[A-Za-z_]\w*\+?=.*")


class Wrapper(msgspec.Struct, frozen=True):
    """``verbs``: what makes the program one ("" = nothing is needed). ``before``: options before the verb with a value.

    ``valued``: options of the verb that take a value; or ``flags``: those that take none, where these are fewer.
    ``names``: how many words of its own stand before the command. ``assigns``: ``A=1`` words stand there, too.
    """

    programs: frozenset[str]
    kind: Kind
    verbs: tuple[str, ...] = ("",)
    before: str = ""
    valued: str = ""
    flags: str = ""
    names: int = 0
    assigns: bool = False


class Layer(msgspec.Struct, frozen=True):
    """One wrapper as it stands in a command.

    ``tool``: its program with the options before its verb. ``at``: index behind the verb in the words that were read.
    ``options``: (name, value; "" for none) in their order. ``names``: its image, container, host. ``inner``: the
    command behind it.
    """

    kind: Kind
    tool: tuple[str, ...]
    verb: str
    at: int
    options: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def program(self) -> str:
        return _name(self.tool[0])

    def has(self, *names: str) -> bool:
        """Whether one of these options is given, and is not switched off (``--tty=false``)."""
        return any(value not in {"false", "0"} for value in self.values(*names))

    def values(self, *names: str) -> tuple[str, ...]:
        return tuple(value for name, value in self.options if name in names)


ENGINES = frozenset({"docker", "podman", "nerdctl"})
COMPOSE = frozenset({"docker-compose", "podman-compose"})
_ENGINE_BEFORE = (
    "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey --root --runroot --connection --url"
    " --identity --storage-driver --storage-opt --cgroup-manager --runtime --namespace -n --address -a"
)
_COMPOSE_BEFORE = "-f --file -p --project-name --profile --env-file --project-directory --ansi --progress --parallel"
_RUN_FLAGS = (
    "-d --detach -i --interactive -t --tty -P --publish-all --rm --init --privileged --read-only --no-healthcheck"
    " --oom-kill-disable --sig-proxy --disable-content-trust --use-api-socket -q --quiet --help --replace --rmi"
    " --no-hosts --no-hostname --http-proxy --tls-verify --read-only-tmpfs --env-host --passwd --unsetenv-all --rootfs"
)
_EXEC_FLAGS = "-d --detach -i --interactive -t --tty --privileged -l --latest -T --no-TTY --no-tty"
_COMPOSE_RUN_FLAGS = (
    "--build -d --detach --dry-run -i --interactive -T --no-TTY --no-tty --no-deps -q --quiet --quiet-build"
    " --quiet-pull --remove-orphans --rm -P --service-ports --use-aliases"
)
TABLE = (
    Wrapper(frozenset({"nohup", "setsid", "command", "caffeinate", "unbuffer"}), "plain"),
    Wrapper(frozenset({"eval", "exec"}), "plain", valued="-a"),
    Wrapper(frozenset({"env"}), "plain", valued="-u --unset -C --chdir -S --split-string", assigns=True),
    Wrapper(frozenset({"nice"}), "plain", valued="-n --adjustment"),
    Wrapper(frozenset({"ionice"}), "plain", valued="-c --class -n --classdata -p --pid"),
    Wrapper(frozenset({"timeout"}), "plain", valued="-k --kill-after -s --signal", names=1),
    Wrapper(frozenset({"stdbuf"}), "plain", valued="-i --input -o --output -e --error"),
    Wrapper(frozenset({"taskset", "chrt"}), "plain", valued="-T --sched-runtime -P -D", names=1),
    Wrapper(
        frozenset({"numactl"}),
        "plain",
        valued="-i --interleave -p --preferred -m --membind -N --cpunodebind -C --physcpubind",
    ),
    Wrapper(frozenset({"time"}), "plain", valued="-f --format -o --output"),
    Wrapper(frozenset({"systemd-inhibit"}), "plain", valued="--what --who --why --mode"),
    Wrapper(
        frozenset({"xvfb-run"}),
        "plain",
        valued="-n --server-num -s --server-args -e --error-file -f --auth-file -w --wait -p --xauth-protocol",
    ),
    Wrapper(
        frozenset({"sudo", "doas"}),
        "user",
        valued="-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T --command-timeout"
        " -U --other-user -D --chdir -R --chroot",
        assigns=True,
    ),
    Wrapper(frozenset({"runuser"}), "user", valued="-u --user -g --group -G --supp-group -w --whitelist-environment"),
    Wrapper(
        frozenset({"conda", "mamba", "micromamba"}),
        "environment",
        verbs=("run",),
        before="-r --root-prefix --rc-file",
        valued="-n --name -p --prefix --cwd -r --root-prefix -e --env --label -a --attach",
    ),
    Wrapper(
        ENGINES,
        "service",
        verbs=("compose run",),
        before=f"{_ENGINE_BEFORE} {_COMPOSE_BEFORE}",
        flags=_COMPOSE_RUN_FLAGS,
        names=1,
    ),
    Wrapper(COMPOSE, "service", verbs=("run",), before=_COMPOSE_BEFORE, flags=_COMPOSE_RUN_FLAGS, names=1),
    Wrapper(
        ENGINES,
        "services",
        verbs=("compose up", "compose start"),
        before=f"{_ENGINE_BEFORE} {_COMPOSE_BEFORE}",
        valued="--attach --exit-code-from --no-attach --pull --scale -t --timeout --wait-timeout",
        names=99,
    ),
    Wrapper(COMPOSE, "services", verbs=("up", "start"), before=_COMPOSE_BEFORE, valued="-t --timeout", names=99),
    Wrapper(
        ENGINES,
        "in_container",
        verbs=("compose exec",),
        before=f"{_ENGINE_BEFORE} {_COMPOSE_BEFORE}",
        flags=_EXEC_FLAGS,
        names=1,
    ),
    Wrapper(COMPOSE, "in_container", verbs=("exec",), before=_COMPOSE_BEFORE, flags=_EXEC_FLAGS, names=1),
    Wrapper(ENGINES, "container", verbs=("run", "container run"), before=_ENGINE_BEFORE, flags=_RUN_FLAGS, names=1),
    Wrapper(
        ENGINES, "in_container", verbs=("exec", "container exec"), before=_ENGINE_BEFORE, flags=_EXEC_FLAGS, names=1
    ),
    Wrapper(
        frozenset({"ssh"}), "host", valued="-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w", names=1
    ),
    Wrapper(
        frozenset({"kubectl", "oc"}),
        "pod",
        verbs=("exec", "run", "attach"),
        before="-n --namespace --context --cluster --kubeconfig --user -s --server",
        valued="-c --container -n --namespace --image -f --filename --pod-running-timeout --overrides -l --labels",
        names=1,
    ),
    Wrapper(
        frozenset({"srun"}),
        "step",
        valued="-A --account -B -c --cpus-per-task -D --chdir -d --dependency -e --error -G --gpus --gres -i --input -J"
        " --job-name -L --licenses -M --clusters -m --distribution --mem --mem-per-cpu --mem-per-gpu -N --nodes -n"
        " --ntasks --ntasks-per-node -o --output -p --partition -q --qos -r --relative -S -t --time -w --nodelist -x"
        " --exclude -C --constraint --export --jobid --gpus-per-node --gpus-per-task --reservation --signal",
    ),
)


def layers(words: Sequence[str]) -> list[Layer]:
    """The wrappers of a command, from the outside. Indices are those of the whole command."""
    found: list[Layer] = []
    rest, offset = tuple(words), 0
    while (layer := peel(rest)) is not None:
        found.append(msgspec.structs.replace(layer, at=layer.at + offset))
        offset += len(rest) - len(layer.inner)
        rest = layer.inner
    return found


def peel(words: Sequence[str]) -> Layer | None:
    """The outermost wrapper; None if the first word is none. Assignments before it are passed over."""
    start = 0
    while start < len(words) and _ASSIGNMENT.fullmatch(words[start]):
        start += 1
    if start == len(words):
        return None
    for row in TABLE:
        if _name(words[start]) in row.programs and (verb := _verb(row, words, start + 1)) is not None:
            return _read(row, words, start, verb)
    return None


def _verb(row: Wrapper, words: Sequence[str], at: int) -> tuple[int, int, str] | None:
    """Index of the verb's first word, index behind its last one, and the verb; None if it is not this one."""
    if row.verbs == ("",):
        return at, at, ""
    taking = frozenset(row.before.split())
    first, text = 0, ""
    while at < len(words):
        word = words[at]
        if word.startswith("-"):
            at += 1 + (word in taking)
            continue
        first, text = first or at, f"{text} {word}".strip()
        at += 1
        if text in row.verbs:
            return first, at, text
        if not any(verb.startswith(f"{text} ") for verb in row.verbs):
            return None
    return None


def _read(row: Wrapper, words: Sequence[str], start: int, verb: tuple[int, int, str]) -> Layer:
    first, at, text = verb
    options: list[tuple[str, str]] = []
    place = at
    while place < len(words) and words[place].startswith("-") and words[place] != "-":
        word = words[place]
        place += 1
        if word == "--":
            break
        following = words[place] if place < len(words) else ""
        given, took_next = _option(row, word, following)
        options += given
        place += took_next
    names: list[str] = []
    while place < len(words) and (len(names) < row.names or (row.assigns and _ASSIGNMENT.fullmatch(words[place]))):
        names.append(words[place])
        place += 1
    if row.kind in {"host", "pod"} and place < len(words) and words[place] == "--":
        place += 1
    return Layer(row.kind, tuple(words[start:first]), text, at, tuple(options), tuple(names), tuple(words[place:]))


def _option(row: Wrapper, word: str, following: str) -> tuple[list[tuple[str, str]], bool]:
    """The options in one word, and whether the next word is the value of the last one."""
    name, equals, value = word.partition("=")
    if word.startswith("--"):
        if equals or not _takes_value(row, name):
            return [(name, value)], False
        return [(name, following)], True
    given: list[tuple[str, str]] = []
    for at, letter in enumerate(word[1:], 1):
        if not _takes_value(row, f"-{letter}"):
            given.append((f"-{letter}", ""))
        elif rest := word[at + 1 :]:
            return [*given, (f"-{letter}", rest.removeprefix("="))], False
        else:
            return [*given, (f"-{letter}", following)], True
    return given, False


def _takes_value(row: Wrapper, name: str) -> bool:
    return name not in row.flags.split() if row.flags else name in row.valued.split()


def _name(word: str) -> str:
    return word.rpartition("/")[2]


# The first process of an attempt's container, kept in the attempt's folder.

CONTAINER_FILE = "container.json"


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``id``: the engine's. ``identity``: its first process as this machine numbers it."""

    id: str
    identity: ProcessIdentity
