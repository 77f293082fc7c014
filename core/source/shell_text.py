"""The shell text that a command runs, as a list of commands: which gives the exit status, and which of them run.

No shell is run. Quotes, comments, here-documents, substitutions, groups and keywords are understood. What cannot be
read is left out.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..model.wrappers import POSIX_SHELLS, peel

OPERATORS = ("&&", "||", "|&", ";;", "|", ";", "&", "\n", "(", ")")
KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
                      "{", "}", "!", "time"})  # fmt: skip
CONDITIONS = frozenset({"if", "elif", "while", "until"})
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_ASSIGNMENT = re.compile(r"\w+\+?=")


class Operator(str):
    """An operator that is not quoted."""

    __slots__ = ()


class ShellCommand(NamedTuple):
    """One simple command. ``after``: the operator that follows it; ``keywords``: those that stand before it."""

    words: tuple[str, ...]
    after: str
    keywords: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def condition(self) -> bool:
        """Whether its status is asked for by ``if``."""
        return not CONDITIONS.isdisjoint(self.keywords[:1])


def commands_of(text: str) -> list[ShellCommand]:
    """Those of functions and behind conditions as if they ran."""
    found: list[ShellCommand] = []
    for each in _statements(text):
        if each.words:
            found.append(each)
        elif found and found[-1].after in {";", "\n", ")"} and each.after in {"|", "|&", "&&", "||", "&"}:
            found[-1] = found[-1]._replace(after=each.after)  # "done | tee", "} && next"
    return found


def _statements(text: str) -> Iterator[ShellCommand]:
    """The commands, and keywords and brackets without a command."""
    words: list[str] = []
    before = ""
    for part in (*_parts(text), Operator("")):
        if not isinstance(part, Operator):
            words.append(part)
        elif part != "\n" or words or before not in {"&&", "||", "|", "|&"}:
            keywords: list[str] = []
            while words and words[0] in KEYWORDS:
                keywords.append(words[0])
                words = [] if words[0] in {"for", "case", "in"} else words[1:]
            yield ShellCommand(tuple(words), part, tuple(keywords))
            words, before = [], part


def without_assignments(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words after ``NAME=value``."""
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at]):
        at += 1
    return words[at:]


def without_wrappers(words: tuple[str, ...], keep: Collection[str] = ()) -> tuple[str, ...]:
    """The command behind ``nohup``, ``env A=1``, ``timeout 3h``, ``sudo -u bob`` …; ``keep``: wrappers that stay."""
    words = without_assignments(words)
    while (layer := peel(words)) is not None and layer.kind in {"plain", "user"} and layer.program not in keep:
        words = without_assignments(layer.inner)
    return words


def assigned(command: Sequence[str]) -> dict[str, str]:
    """The variables that ``A=1 python …`` and ``env A=1 python …`` set."""
    words = without_wrappers(tuple(command))
    pairs = (word.partition("=") for word in command[: len(command) - len(words)] if not word.startswith("-"))
    return {name: value for name, equals, value in pairs if equals}


LONGEST_BYTES = 1 << 18


class ShellProgram(NamedTuple):
    """The text that a shell runs. ``file``: its name; "" for the text behind ``-c``."""

    text: str
    options: tuple[str, ...] = ()
    file: str = ""


def shell_program(words: tuple[str, ...], cwd: Path) -> ShellProgram | None:
    """The program of a command that is a shell or a shell script; None if it is neither, or cannot be read."""
    at = shell_at(words)
    if at is None:
        return _read_script(words[0], None, cwd) if words else None
    options: list[str] = []
    for place, word in enumerate(words[at + 1 :], at + 2):
        if not word.startswith(("-", "+")) and not re.match(r"[-+].*o$", options[-1] if options else ""):
            return _read_script(word, tuple(options), cwd)
        options.append(word)
        if re.match(r"-[a-zA-Z]*c", word):
            text = next((each for each in words[place:] if not each.startswith("-")), "")
            return ShellProgram(text, tuple(options))
    return None


def shell_at(words: tuple[str, ...]) -> int | None:
    """Where the shell stands: first, or after a launcher such as ``srun -n 1``."""
    for at, word in enumerate(words):
        if Path(word).name in POSIX_SHELLS:
            return at
        if re.match(r"(?:.*/)?python[\d.]*$|.*\.(?:py|sh|bash)$", word):
            return None
    return None


def _read_script(name: str, options: tuple[str, ...] | None, cwd: Path) -> ShellProgram | None:
    """``options``: of the shell that is named before it; None: its own first line or its name tells that it is one."""
    path = cwd / name
    try:
        if "/" not in name and not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(LONGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    first = text.partition("\n")[0]
    shebang = first[2:].split() if first.startswith("#!") else []
    by_itself = any(Path(word).name in POSIX_SHELLS for word in shebang) if shebang else path.suffix in {".sh", ".bash"}
    if options is None and not by_itself:
        return None
    given = tuple(word for word in shebang[1:] if word.startswith("-") or word == "pipefail")
    return ShellProgram(text, given if options is None else options, name)


def _parts(text: str) -> Iterator[str]:
    """Words without their quotes, and operators."""
    word, at, quoted = "", 0, False
    ends: list[str] = []
    while at < len(text):
        char = text[at]
        here = _HERE.match(text, at) if char == "<" else None
        if here is not None and text[at : at + 3] != "<<<":
            ends.append(here[2])
            at = here.end()
        elif char == "\\":
            if text[at + 1 : at + 2] != "\n":
                word += text[at + 1 : at + 2]
            at += 2
        elif char in "'\"`":
            end = _end_of_quote(text, at)
            inside = text[at + 1 : end]
            word, quoted, at = word + (f"$({inside})" if char == "`" else inside), True, end + 1
        elif text.startswith("$(", at) or text.startswith("${", at):
            end = _end_of_group(text, at + 1)
            word, at = word + text[at:end], end
        elif char == "#" and not word:
            at = _line_end(text, at)
        elif char in "<>":
            word, at = word + char, at + 1
            if text[at : at + 1] in {"&", "|", ">", "<"}:
                word, at = word + text[at], at + 1
        elif text.startswith("&>", at):
            word, at = word + "&>", at + 2
        elif char in " \t\r" or (operator := next((o for o in OPERATORS if text.startswith(o, at)), "")):
            if word or quoted:
                yield word
            word, quoted = "", False
            if char in " \t\r":
                at += 1
                continue
            yield Operator(operator)
            at += len(operator)
            if operator == "\n" and ends:
                for mark in ends:  # over the here-documents that begin here
                    line = ""
                    while at < len(text) and line != mark:
                        line, at = text[at : _line_end(text, at)].strip(), _line_end(text, at) + 1
                ends = []
        else:
            word, at = word + char, at + 1
    if word or quoted:
        yield word


def _end_of_quote(text: str, at: int) -> int:
    """Position of the quote that closes the one at ``at``; the end of the text if there is none."""
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" and quote != "'" else 1
    return at


def _end_of_group(text: str, at: int) -> int:
    """Position after the bracket that closes the one at ``at``."""
    opening, closing = text[at], ")" if text[at] == "(" else "}"
    depth = 0
    while at < len(text):
        if text[at] in "'\"":
            at = _end_of_quote(text, at)
        elif text[at] == opening:
            depth += 1
        elif text[at : at + 1] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(text)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


# Which commands run: conditions on variables, with the values that these have.


class Variables:
    """The variables of a shell as far as its text is read. ``exported``: the names that its children get."""

    def __init__(
        self, env: Mapping[str, str], text: str, args: Sequence[str] | None, trainer: tuple[str, ...] = ()
    ) -> None:
        """``args``: the words behind the script; None = not known. ``trainer``: the last words of its command."""
        self._trainer = trainer
        self.known = dict(env)
        self.exported = set(env)
        self._unset_known = True
        self._elsewhere = {*_set_elsewhere(text), "OLDPWD"}
        self.known |= {str(n): word for n, word in enumerate([*(args or ()), *[""] * 9], 1)}
        if args is None or _OTHER_ARGUMENTS.search(text):
            self._elsewhere |= {str(n) for n in range(10)}
        self._unsure = set(self._elsewhere)

    def filled(self, word: str, *, unset: bool = False) -> str:
        """With the values of variables; what is not known stays as it is. ``unset``: one that is not set is empty."""

        def value(found: re.Match[str]) -> str:
            name, sign, other = found[1] or found[4], found[2] or "", found[3] or ""
            told = unset and self._unset_known and name not in self._unsure and not name.startswith("0")
            there = self.known.get(name, "" if told else None)
            if there is None or name in self._unsure or (other and not sign):
                or_else = self._unset_known and name not in self._unsure and sign.endswith("-")
                return other if or_else else found[0]
            is_set = bool(there) if ":" in sign else name in self.known
            return there if not sign or is_set is sign.endswith("-") else other if is_set or sign.endswith("-") else ""

        return _VARIABLE.sub(value, word)

    def read(self, words: Sequence[str], folder: Path, runs: bool | None) -> None:
        """What a command sets, if it runs; ``A=1`` before another command is for that one alone."""
        declares = words[0] in {"export", "declare", "typeset", "local", "readonly"}
        own = tuple(word for word in words[1:] if word[:1] != "-") if declares else tuple(words)
        self.known["PWD"] = str(folder)
        self._unsure |= {"PWD"} if words[0] in {"cd", "pushd", "popd"} else set()
        if words[0] == "export" or (declares and "-x" in words):
            self.exported |= {word.partition("=")[0].removesuffix("+") for word in own}
        for name, value in assigned(own).items() if runs is not False and not without_assignments(own) else ():
            name, added = name.removesuffix("+"), name.endswith("+")  # noqa: PLW2901
            self.known[name] = self.filled(f"${{{name}}}{value}" if added else value)
            unsure = runs is None or name in self._elsewhere or not set("$`").isdisjoint(self.known[name])
            self._unsure = self._unsure | {name} - _SEARCHED if unsure else self._unsure - {name}
        if words[0] not in {"eval", "source", "."} or len(words) < 2 or runs is False:
            return
        try:
            text = "" if words[0] == "eval" else folder.joinpath(self.filled(words[1])).read_text(errors="replace")
        except (OSError, ValueError):
            text = ""
        self._unset_known = self._unset_known and bool(text)
        self._unsure |= {*re.findall(r"(\w+)\+?=", text), *_set_elsewhere(text)} - _SEARCHED

    def is_trainer(self, words: Sequence[str]) -> bool:
        trainer, given = list(self.expanded(self._trainer)), list(self.expanded(words))
        return bool(trainer) and given[-len(trainer) :] == trainer

    def expanded(self, words: Sequence[str]) -> Iterator[str]:
        """With the values of variables; all words of ``$FLAGS`` and of ``$CMD`` in front, as others may be quoted."""
        first = len(words) - len(without_wrappers(tuple(words)))
        for at, word in enumerate(words):
            value = self.filled(word)
            parts = [value] if value == word else value.split()
            yield from parts if len(parts) < 2 or (word[:1] == "$" and (at == first or value[:1] == "-")) else [word]

    @property
    def exports(self) -> dict[str, str]:
        """What its children get; ``$NAME`` of a value that cannot be told."""
        held = {name: value for name, value in self.known.items() if name in self.exported}
        return held | {name: f"${name}" for name in self._unsure - (self.known.keys() - self.exported)}

    def holds(self, words: Sequence[str], is_there: Callable[[str], bool]) -> bool | None:
        """The status of a test; None of one of files, or if it cannot be told. ``is_there``: at a restart for sure.

        A restart follows a trainer that has failed.
        """
        if self.is_trainer(words):
            return False
        if words[0] in {":", "true", "false"}:
            return words[0] != "false"
        ends = {"[": "]", "[[": "]]", "test": None}.get(words[0], "")
        if ends == "" or (ends and words[-1] != ends):
            return None
        test = [self.filled(word, unset=True) for word in (words[1:-1] if ends else words[1:])]
        negated = len(test) > 1 and test[0] == "!"
        holds = _status(test[negated:], is_there)
        return holds if holds is None else holds is not negated


_VARIABLE = re.compile(r"\$\{(\w+)(?::?\?[^{}]*|%/)?(:?[-+]|)([^{}]*)\}|\$(\w+)")
_READS = re.compile(r"\bfor\s+(\w+)\s+in\b|\b(?:read|getopts|mapfile|unset|let)\s([^\n;|&]*)|\$\{(\w+):?=")
"""What gives a variable a value that the text does not show."""
_OTHER_ARGUMENTS = re.compile(r"\bshift\b|\bset\s+--|\w\s*\(\)|\bfunction\s")
"""After or within it ``$1`` is another word than that behind the script."""
_SEARCHED = frozenset({"PATH", "PYTHONPATH"})
"""Of these the folders count that are known."""


def _set_elsewhere(text: str) -> set[str]:
    return {name for found in _READS.findall(text) for name in re.findall(r"[A-Za-z_]\w*", " ".join(found))}


_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__, "-ne": int.__ne__, "-gt": int.__gt__, "-ge": int.__ge__, "-lt": int.__lt__, "-le": int.__le__,
}  # fmt: skip


def _status(test: Sequence[str], is_there: Callable[[str], bool]) -> bool | None:
    match test:
        case ["-d" | "-e", path]:
            return True if is_there(path) else None
        case [*all_] if not set("$`").isdisjoint("".join(all_)):
            return None
        case [word]:
            return bool(word)
        case ["-n" | "-z" as sign, word]:
            return bool(word) is (sign == "-n")
        case [left, "=" | "==" | "!=" as sign, right] if not set("*?[") & set(right):
            return (left == right) is (sign != "!=")
        case [left, sign, right] if sign in _COMPARES and left.isdigit() and right.isdigit():
            return _COMPARES[sign](int(left), int(right))
        case _:
            return None


class _Block(msgspec.Struct):
    """``opener``: its keyword. ``outer``: whether it is reached; ``gate``: whether its commands run at this place.

    ``taken``: whether an earlier branch of an ``if`` was. ``chain``: of ``&&`` and ``||``. ``why``: the condition.
    """

    opener: str
    outer: bool | None
    gate: bool | None
    why: str = ""
    taken: bool | None = False
    chain: bool | None = True
    joined: str = ""


def _both(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if None in {one, other} else True


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


_CLOSES = {"fi": "if", "done": "loop", "esac": "case", "}": "{", ")": "("}
_OPENS = {"while": "loop", "until": "loop", "for": "loop", "case": "case"}


def commands_run(
    text: str, variables: Variables, is_there: Callable[[str], bool]
) -> Iterator[tuple[ShellCommand, bool | None, str]]:
    """(command, whether it runs, the condition for it): None if that cannot be told; what is in a loop or function.

    A caller gives ``variables`` what the command sets before it asks for the next one.
    """
    blocks, last, defines = [_Block("", outer=True, gate=True)], "", False
    status: bool | None = None
    for each in _statements(text):
        negated = False
        for word in each.keywords:
            here = blocks[-1]
            runs = _both(here.gate, here.chain)
            if word in {"if", "{"} or word in _OPENS:
                opener = _OPENS.get(word, word)
                gate = runs if opener in {"if", "{"} and not defines else _both(runs, None)
                blocks.append(_Block(opener, runs, gate, last if here.joined else here.why))
            elif word == "then":
                here.gate, here.why = _both(here.outer, _both(_not(here.taken), status)), last
                here.taken = _not(_both(_not(here.taken), _not(status)))
            elif word in {"else", "elif"}:
                here.gate = _both(here.outer, _not(here.taken))
            elif _CLOSES.get(word) == here.opener:
                blocks.pop()
                status = status if word == "}" else None
            negated = negated is not (word == "!")
            defines = False
        here = blocks[-1]
        if each.words:
            runs = _both(here.gate, here.chain)
            new = variables.holds(each.words, is_there)
            new = _not(new) if negated else new
            before = status
            if here.joined:
                joins = here.joined == "&&"
                new = _both(status, new) if joins else _not(_both(_not(status), _not(new)))
            yield each, runs, last if here.joined else here.why
            status, last = new, each.text
            leaves = each.words[0] == "exit" or (each.words[0] == "exec" and not re.match(r"exec \d*[<>&]", each.text))
            for block in reversed(blocks if leaves else ()):
                block.gate, block.outer = _both(block.gate, _not(runs)), _both(block.outer, _not(runs))
                if block.opener == "(":
                    break
            if each.after in {"|", "|&"}:
                status = before
                continue
        if each.after == "(":
            blocks.append(_Block("(", here.gate, _both(here.gate, None if each.words else here.chain), here.why))
        elif each.after == ")" and here.opener == "(":
            defines = not each.words
            blocks.pop()
        else:
            here.joined = each.after if each.after in {"&&", "||"} else ""
            here.chain = True if not here.joined else status if here.joined == "&&" else _not(status)
