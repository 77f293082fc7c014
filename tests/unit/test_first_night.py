"""How many words somebody has to learn from the README before the first protected night."""

import re

from tests.pages import REPOSITORY
from trainwatch.cli.parser import verbs
from trainwatch.tui.keys import KEYS

MOST = 10
FIELD = frozenset({
    "action", "cause", "crash", "finding", "hang", "idle", "log", "phase", "restart", "run", "step", "verified",
})  # fmt: skip
"""Words of the glossary that everybody has who trains models; they mean here what they mean elsewhere."""


def beginning() -> str:
    """The README, without the targets of links."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\([^)]*\)", "]", text)


def section(title: str) -> dict[str, str]:
    """The rows of a table of the glossary."""
    text = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE)
    return {word.strip("`"): meaning for word, meaning in rows if word != "word"}


def own_words(text: str) -> set[str]:
    """Verbs, options, placeholders and keys of trainwatch, and words of its glossary, in a text."""
    code = [*re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL), *re.findall(r"`([^`\n]+)`", text)]
    keys = {part for key in KEYS for part in re.split("[ …]", key.shown)}
    found = {piece for piece in code if piece in keys}
    for line in (line for piece in code for line in piece.splitlines()):
        found |= set(re.findall(r"\{\w+\}", line))
        found |= set(re.findall(r"^\./trainwatch\.sh (\w+)", line))
        own, divider, _ = line.partition(" --")
        if re.match(r"trainwatch( |$)", line):
            found |= set(own.split()[1:2]) | set(re.findall(r"--\w[\w-]*", line.partition(" -- ")[0]))
            found |= {"--"} if f"{divider} " in line else set()
        if line in verbs():
            found.add(line)
    prose = re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)).lower()
    terms = {term for row in section("All words") for term in row.split(" / ")} - FIELD
    return found | {term for term in terms if re.search(rf"\b{re.escape(term.lower())}(s|es)?\b", prose)}


def test_at_most_ten_words_come_before_the_first_protected_night() -> None:
    words = own_words(beginning())
    assert len(words) <= MOST, sorted(words)
    assert words == set(section("The first night"))


def test_the_count_finds_words() -> None:
    text = "The supervisor of `trainwatch adopt --pid 4 -- x {config}`.\n\n```\n./trainwatch.sh check\n```\nPress `q`."
    assert own_words(text) == {"supervisor", "adopt", "--pid", "--", "{config}", "check", "q"}
