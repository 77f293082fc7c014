"""What the documentation shows is what there is: commands parse, settings exist, links lead somewhere, lists are whole."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tests.pages import PAGES, REPOSITORY, SHELL, Block, Shown, blocks
from trainwatch.cli.parser import build_parser, listed_verbs, verbs
from trainwatch.core.act import notify
from trainwatch.core.config.project import load_project
from trainwatch.core.config.shipped import load_presets, load_profiles
from trainwatch.core.model.decision import JOURNAL_VERSION, Decision, Record
from trainwatch.core.model.fact import Fact
from trainwatch.core.model.settings import NoticeEvent
from trainwatch.tui.keys import KEYS

SCRIPT = (REPOSITORY / "trainwatch.sh").read_text()


def spans() -> Iterator[Shown]:
    """Code in running text, such as `trainwatch status`."""
    for page in PAGES:
        fenced = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            fenced ^= line.startswith("```")
            if not fenced:
                yield from (Shown(page, number, text) for text in re.findall(r"`([^`]+)`", line))


BLOCKS = list(blocks())
LINES = [line for block in BLOCKS if block.language in SHELL for line in block.lines]
NAMED = [shown for shown in spans() if re.fullmatch(r"trainwatch [a-z]+", shown.text)]
EXAMPLES = [
    shown
    for shown in (*LINES, *spans())
    if re.match(r"trainwatch( |$)", shown.text) and "…" not in shown.text and shown not in NAMED
]
CALLS = [shown for shown in (*LINES, *spans()) if shown.text.startswith("./trainwatch.sh ")]


def test_the_pages_show_commands() -> None:
    """That the tests below look at something."""
    assert len(EXAMPLES) > 30
    assert len(CALLS) > 5


@pytest.mark.parametrize("shown", EXAMPLES, ids=str)
def test_a_command_that_is_shown_parses(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(shown.text, comments=True)[1:]
    words = words[: next((at for at, word in enumerate(words) if word in {"|", ">", "&&"}), None)]
    words = words[: words.index("--")] if "--" in words else words
    try:
        build_parser(words).parse_args(words)
    except SystemExit as end:
        pytest.fail(f"{shown}\n{capsys.readouterr().err}") if end.code else None


def test_a_verb_that_is_named_exists() -> None:
    assert [str(shown) for shown in NAMED if shown.text.split()[1] not in verbs()] == []


@pytest.mark.parametrize("verb", listed_verbs())
def test_every_verb_shows_an_example_that_parses(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        build_parser([verb]).parse_args([verb, "--help"])
    assert end.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    told = re.sub(r"(\w)- (\w)", r"\1-\2", told)  # argparse breaks lines behind hyphens
    example = re.search(r"example: trainwatch (.*)$", told)
    assert example, f"trainwatch {verb} --help shows no example"
    words = shlex.split(example[1])
    words = words[: words.index("--")] if "--" in words else words
    build_parser(words).parse_args(words)


@pytest.mark.parametrize("shown", CALLS, ids=str)
def test_a_call_of_the_script_that_is_shown_exists(shown: Shown) -> None:
    word = shlex.split(shown.text, comments=True)[1]
    known = re.findall(r"^    ([a-z]+)\)", SCRIPT, flags=re.MULTILINE)
    assert word in known or word in verbs(), f"{shown}: trainwatch.sh knows no {word}"


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "toml"], ids=lambda block: str(block.lines[0])
)
def test_settings_that_are_shown_exist(block: Block, tmp_path: Path) -> None:
    text = "\n".join(line.text for line in block.lines)
    if "[run]" not in text:
        text += '\n[run]\ncommand = ["python", "train.py"]\n'
    path = tmp_path / "trainwatch.toml"
    path.write_text(text)
    load_project(path, profiles=load_profiles(), presets=load_presets())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text())
    files = [((page.parent / target) if target else page, anchor) for target, anchor in links if "://" not in target]
    assert [f"{file}#{anchor}" for file, anchor in files if not file.exists()] == []
    assert [f"{file}#{anchor}" for file, anchor in files if anchor and anchor not in anchors(file)] == []


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [REPOSITORY / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
        waiting += [(page.parent / target).resolve() for target in targets if "://" not in target]
    assert [str(page.relative_to(REPOSITORY)) for page in PAGES if page.resolve() not in seen] == []


def test_the_keys_that_the_first_night_names_exist() -> None:
    section = (REPOSITORY / "docs/first-night.md").read_text().split("## Keys")[1]
    shown = {part for key in KEYS for part in re.split("[ …]", key.shown)}
    assert set(re.findall(r"`([^`]+)`", section)) - shown == set()


def test_every_preset_has_its_row() -> None:
    page = (REPOSITORY / "docs" / "presets.md").read_text()
    table = page.partition("## Keys of a preset")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE)) == set(load_presets())


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    pages = sorted(page.name for page in folder.glob("[0-9]*.md"))
    assert re.findall(r"^\| \[\d+\]\(([^)]+)\)", index, flags=re.MULTILINE) == pages
    for page in pages:
        number, title = re.match(r"# (\d+)\. (.+)", (folder / page).read_text()).groups()  # type: ignore[union-attr]
        assert int(number) == int(page[:4])
        assert f"[{number}]({page}) | {title} |" in index


def test_every_notified_event_is_documented() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "notifications.md").read_text()
    table = " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", table)) == set(get_args(NoticeEvent))
    assert set(notify.KINDS) == set(get_args(NoticeEvent)), "what apprise shows it as"


def test_the_journal_page_shows_every_kind_of_record_as_it_is() -> None:
    lines = [
        line.text
        for block in BLOCKS
        if block.page.name == "state.md" and block.language == "json"
        for line in block.lines
    ]
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    bodies = [record.fact or record.decision or record.outcome for record in records]
    assert None not in bodies
    shown = {type(body) for body in bodies}
    assert shown >= {*get_args(Fact), *get_args(Decision)}
    assert {record.v for record in records} == {JOURNAL_VERSION}
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
