"""Unknown words on the command line: one line, exit code 2, and the nearest valid word."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from trainwatch.cli import main
from trainwatch.cli.parser import SECTIONS, build_parser, every_action, listed_verbs, spelled_out, verbs, whole_parser
from trainwatch.cli.parser import verb as verb_named
from trainwatch.core.model.settings import Settings


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("statsu", 'there is no verb "statsu"; did you mean "status"?; see `trainwatch --help`'),
        ("stauts x", 'there is no verb "stauts"; did you mean "status"?'),
        ("resmue x", 'there is no verb "resmue"; there are: ack, act, '),  # nothing that starts a training is offered
        ("checkpoints lst x", 'there is no verb "lst"; did you mean "list"?; see `trainwatch checkpoints --help`'),
        ("status --jsn", 'unknown option --jsn; did you mean "--json"?; see `trainwatch status --help`'),
        ("status --jsn=1", 'unknown option --jsn; did you mean "--json"?'),
        ("checkpoints list x --jsn", 'did you mean "--json"?'),
        ("--haedless", 'unknown option --haedless; did you mean "--headless"?'),
        ("events --since 5", "unknown option --since; there are: "),  # not --json: two dashes are no likeness
        ("check -q", "unknown option -q; there are: --after, --help, --json, --run"),
        ("report --format mdd", '--format takes no "mdd"; did you mean "md"?'),
        ("status a -- b", "trainwatch status takes no command: `-- b`; see `trainwatch --help`"),
        ("status a b", "unexpected: b; see `trainwatch status --help`"),
        ("adopt --pid x", "argument --pid: invalid int value: 'x'; see `trainwatch adopt --help`"),
    ],
)
def test_an_unknown_verb_suggests_the_nearest_valid_one(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("trainwatch: ")
    assert said in shown.err


def test_an_unknown_verb_without_a_near_match_lists_all_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zzz", "status"]) == 2
    told = capsys.readouterr().err
    assert all(f" {verb}," in told or f" {verb};" in told for verb in listed_verbs())
    assert "supervise" not in told


@pytest.mark.parametrize("verb", [v for v in listed_verbs() if verbs()[v][0] == "control"])
def test_every_operator_verb_accepts_the_yes_option(
    verb: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.setenv("TRAINWATCH_HOME", str(empty))
    monkeypatch.chdir(empty)
    words = {"profile": ["balanced"], "act": ["ask"], "forget": ["luca"]}.get(verb, [])
    assert main([verb, "--yes", *words]) == 3  # there is no run, which is all that is wrong


def test_each_verb_has_one_file_and_one_section_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["help", "all"])
    shown = capsys.readouterr().out
    for verb, (section, _) in verbs().items():
        said = verb_named(verb).help
        line = f"\n  {verb:12} {said}\n"
        assert shown.count(line) == (said is not None)
        _, _, below = shown.partition(f"\n{SECTIONS[section][0]}:\n")
        assert said is None or line in f"\n{below.split(chr(10) * 2)[0]}\n"


def test_every_verb_of_a_file_is_in_a_section() -> None:
    for file in {file for _, file in verbs().values()}:
        names = {name for name, (_, of) in verbs().items() if of == file}
        assert set(import_module(f"trainwatch.cli.{file}").VERBS) == names


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("ls --json", "runs --json"),
        ("list", "runs"),
        ("ps", "runs"),
        ("start --dry-run", "run --dry-run"),
        ("launch", "run"),
        ("tail luca", "logs --follow luca"),
        ("unpause luca", "resume --paused luca"),
        ("version", "--version"),
        ("help", "--help"),
        ("help all", "--help-all"),
        ("help resume", "resume --help"),
        ("help unpause", "resume --paused --help"),
        ("stop ls", "stop ls"),
        ("", ""),
    ],
)
def test_words_of_other_tools_are_understood(words: str, meant: str) -> None:
    assert spelled_out(words.split()) == meant.split()


def test_a_run_may_be_called_like_a_verb() -> None:
    assert build_parser(["stop", "--yes", "stop"]).parse_args(["stop", "--yes", "stop"]).run == "stop"


@pytest.mark.parametrize("words", ["--help", "--help-all"])
def test_the_help_fits_80_columns_with_one_line_for_each_verb(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        build_parser([words]).parse_args([words])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_every_argument_of_every_verb_says_what_it_is() -> None:
    own = {"help", "version"}
    nameless = [
        action.metavar or action.dest
        for action in every_action(whole_parser())
        if action.help is None and action.dest not in own and action.metavar != "PART"  # parts have their lines
    ]
    assert nameless == []


def test_the_defaults_that_the_help_of_run_tells_are_those_of_the_settings() -> None:
    told = {action.dest: action.help or "" for action in every_action(build_parser(["run"]))}
    settings = Settings()
    assert f"else {settings.watch.summary_s:g})" in told["interval_s"]
    assert f"else {settings.restart.max_restarts})" in told["max_restarts"]


@pytest.mark.parametrize("verb", ["checkpoints", "profiles", "queue"])
def test_the_help_of_a_verb_with_parts_lists_them_and_no_placeholder(verb: str) -> None:
    """In a process of its own: there argparse is loaded without gettext."""
    done = subprocess.run(
        [sys.executable, "-m", "trainwatch", verb, "--help"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert "parts:" in done.stdout
    assert "None" not in done.stdout


@pytest.mark.parametrize(("link", "said"), [(False, "`./trainwatch.sh run -- "), (True, "`trainwatch run -- ")])
def test_a_command_that_is_suggested_can_be_typed_in_a_checkout(tmp_path: Path, link: bool, said: str) -> None:
    if link:
        (tmp_path / "trainwatch").symlink_to("/bin/true")
    env = {"PATH": str(tmp_path), "TRAINWATCH_HOME": str(tmp_path / "home"), "TRAINWATCH_SCRIPT": "./trainwatch.sh"}
    for words in (("status", "none"), ("runs",)):
        command = [sys.executable, "-m", "trainwatch", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert said in done.stdout + done.stderr
