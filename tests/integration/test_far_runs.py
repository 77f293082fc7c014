"""``runs --on all``: what other machines answer, over an ``ssh`` that runs its command here."""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.fakes.e2e_world import Done, in_this_process, own_runtime
from trainwatch.core.app.hosts.far_runs import FarRow, _card
from trainwatch.core.views.screens.run_list import run_row

ROW = {
    "id": "job-1a2b3c4d", "run": "job", "state": "running", "attempt": 2, "step": 10, "total_steps": 40,
    "supervisor": {"alive": True, "responsive": True}, "created": 5.0, "cwd": "/w",
}  # fmt: skip


class Machines:
    """Hosts whose trainwatch prints what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = own_runtime(folder) | {
            "PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "TRAINWATCH_HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }  # fmt: skip
        (folder / "bin").mkdir()
        self._program("bin/ssh", 'for last; do :; done\nexec sh -c "$last"')
        self.config = folder / "config" / "trainwatch" / "config.toml"
        self.config.parent.mkdir(parents=True)

    def _program(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def add(self, name: str, answer: object, *, code: int = 0, said: str = "") -> None:
        printed = self.folder / f"{name}.json"
        printed.write_text(answer if isinstance(answer, str) else json.dumps(answer))
        version = '[ "$1" = --version ] && { echo "trainwatch 9.9"; exit; }'
        program = self._program(name, f"{version}\ncat {printed}\necho '{said}' >&2\nexit {code}")
        with self.config.open("a") as file:
            file.write(f'[hosts.{name}]\nssh = "{name}"\ncommand = "{program}"\n')

    def list(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        return in_this_process(["runs", "--on", "all", *words], self.folder, self.env | dict(env or {}))


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


def test_runs_of_all_machines_in_one_list(machines: Machines) -> None:
    needs = {"eta_s": 60.0, "needs_you": "The run is held: no room. Continue with `trainwatch --on b resume`."}
    machines.add("a", {"runs": [ROW | {"created": 9.0}]})  # a version of before these keys
    machines.add("b", {"runs": [ROW | needs], "more": 1})
    told = machines.list("--json").json
    assert [(row["host"], row["id"], row.get("needs_you")) for row in told["runs"]] == [
        ("a", "job-1a2b3c4d", None), ("b", "job-1a2b3c4d", needs["needs_you"])
    ]  # fmt: skip
    assert told["hosts"] == [{"name": name, "reached": True, "trouble": None} for name in ("a", "b")]
    text = machines.list().out
    for words in ("a:job-1a2b3c4d", "b:job-1a2b3c4d", "60 s left", "The run is held: no room"):
        assert words in text


@pytest.mark.parametrize(
    ("answer", "code", "said", "told"),
    [
        ("not json", 0, "", "it answered what this version does not understand"),
        ({"runs": [ROW | {"state": "dreaming"}]}, 0, "", "it answered what this version does not understand"),
        ({"runs": [ROW | {"id": "--all; rm"}]}, 0, "", "it answered what this version does not understand"),
        ("", 1, "trainwatch: the state folder is not ours", "trainwatch 9.9 there: the state folder is not ours"),
        ("", 255, "ssh: connect to host x port 22: Connection refused", "the connection was cut"),
    ],
)
def test_a_machine_without_a_usable_answer_is_named_with_the_reason_and_the_others_are_listed(
    machines: Machines, answer: object, code: int, said: str, told: str
) -> None:
    machines.add("good", {"runs": [ROW]})
    machines.add("bad", answer, code=code, said=said)
    listed = machines.list("--json")
    assert listed.code == 0
    assert [row["host"] for row in listed.json["runs"]] == ["good"]
    (bad,) = [each for each in listed.json["hosts"] if not each["reached"]]
    assert bad["name"] == "bad"
    assert told in bad["trouble"]
    assert "no answer: " in machines.list().out


def test_what_a_machine_tells_cannot_act_on_the_terminal(machines: Machines) -> None:
    machines.add("evil", {"runs": [ROW | {"run": "a\x1b]0;b\x07", "cwd": "/w\x1b[2J", "needs_you": "\x1b[31mred"}]})
    assert "\x1b" not in machines.list().out
    assert "\x1b" not in machines.list("--json").out


def test_without_ssh_or_other_machines_the_own_runs_are_listed_and_it_is_said(machines: Machines) -> None:
    nobody = machines.list()
    assert (nobody.code, "no other machine is known" in nobody.err) == (0, True)
    machines.add("a", {"runs": [ROW]})
    listed = machines.list("--json", env={"PATH": str(machines.folder / "nothing")}).json
    assert listed["runs"] == []
    assert "ssh is not installed here" in listed["hosts"][0]["trouble"]


def test_what_is_said_of_a_silence_there_is_said_here(machines: Machines) -> None:
    silent = {"still": "last step 2 min ago, usually 2.50 s/step", "level": "danger", "trouble": "No step for 2 min"}
    machines.add("a", {"runs": [ROW | silent]})
    assert f"/w · {silent['still']}" in machines.list().out
    card = _card("a", msgspec.convert(ROW | silent, FarRow), "")
    assert (card.level, run_row(card, 0.0).level) == ("danger", "danger")
