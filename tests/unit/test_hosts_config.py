"""``[hosts.NAME]``: the user's own file and a project's trainwatch.toml."""

from pathlib import Path

import pytest

from trainwatch.core.act.remote import needs_a_person, why_failed
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.hosts.run_there import all_hosts, host_named
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.project import load_project
from trainwatch.core.model.run import Host

BOX1 = '[hosts.box1]\nssh = "user@box1"\n'


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file; the working folder is a project's."""
    path = tmp_path / "config" / "trainwatch" / "config.toml"
    path.parent.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


def test_a_host_of_the_users_file_is_found(own: Path) -> None:
    own.write_text(BOX1 + 'command = "~/tw"\nfolder = "~/runs"\n')
    assert host_named("box1") == Host(name="box1", ssh="user@box1", command="~/tw", folder="~/runs")


def test_a_projects_file_adds_hosts_and_replaces_none(own: Path) -> None:
    own.write_text(BOX1)
    Path("trainwatch.toml").write_text(
        '[run]\ncommand = ["x"]\n[hosts.box1]\nssh = "other"\n[hosts.box2]\nssh = "user@box2"\n'
    )
    assert {name: host.ssh for name, host in all_hosts().items()} == {"box1": "user@box1", "box2": "user@box2"}
    assert load_project(Path("trainwatch.toml")).runs


def test_an_unknown_host_names_the_nearest_or_how_to_add_it(own: Path) -> None:
    own.write_text(BOX1)
    with pytest.raises(CliError, match='no host "bx1"; did you mean "box1"') as caught:
        host_named("bx1")
    assert caught.value.code == ExitCode.USAGE
    own.unlink()
    with pytest.raises(CliError, match=r"to add it, write into .*config.toml: \[hosts.gpu\]"):
        host_named("gpu")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[hosts.box1]\nshh = "x"\n', 'config.toml:2: unknown key "shh"; did you mean "ssh"?'),
        ('[hosts.box1]\nfolder = "x"\n', 'config.toml:1: "box1" needs "ssh"'),
        ('[hosts.box1]\nssh = ""\n', 'config.toml:1: "box1" needs "ssh"'),
        ('[hosts.box1]\nssh = "-oProxyCommand=x"\n', "must be one word for ssh"),
        ('[hosts.box1]\nssh = "a b"\n', "must be one word for ssh"),
        ('[hosts."a/b"]\nssh = "x"\n', '"a/b" is no name for a host'),
        ('[hosts.all]\nssh = "x"\n', '"all" means all hosts after --on'),
        ("[hosts]\nbox1 = 3\n", '"box1" is a table'),
        ("[host]\n", 'unknown key "host"; did you mean "hosts"?'),
    ],
)
def test_a_wrong_table_is_told_with_its_line(own: Path, text: str, said: str) -> None:
    own.write_text(text)
    with pytest.raises(CliError) as caught:
        all_hosts()
    assert said in str(caught.value)
    if text.startswith("[hosts"):
        Path("trainwatch.toml").write_text('[run]\ncommand = ["x"]\n' + text)
        with pytest.raises(ConfigError):
            load_project(Path("trainwatch.toml"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ssh: Could not resolve hostname bx: Name or service not known", "no machine has the name in user@box1"),
        ("ssh: connect to host b port 22: Connection refused", "no ssh server listens"),
        ("ssh: connect to host b port 22: Connection timed out", "it is down, or not reachable"),
        ("user@box1: Permission denied (publickey).", "it refused the login"),
        ("Host key verification failed.", "its host key is not known here"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "its host key has changed",
        ),
        ("Timeout, server b not responding.", "the connection was cut"),
        ("Shared connection to b closed.", "the connection was cut; what runs there goes on"),
        ("strange words", "box1: strange words"),
        ("", "ssh ended without a word"),
    ],
)
def test_failures_of_ssh_are_told_in_plain_words(said: str, told: str) -> None:
    assert told in why_failed(Host(name="box1", ssh="user@box1"), said)


def test_what_a_person_has_to_mend_is_not_tried_every_few_seconds() -> None:
    for lasting in ("Permission denied (publickey).", "Host key verification failed.", "Could not resolve hostname bx"):
        assert needs_a_person(lasting)
    for passing in ("Connection refused", "Connection timed out", "Timeout, server b not responding.", ""):
        assert not needs_a_person(passing)
