"""CONTRIBUTING.md, "Where to add what": the files of each row exist, and following the row is enough."""

import argparse
import ast
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.source_trees import OURS, one_of, trees
from trainwatch.cli import examine, main, parser
from trainwatch.cli.verb import Verb, arg
from trainwatch.core.config.shipped import load_presets, load_profiles, load_remedies
from trainwatch.core.model.checkpoint import KIND_OF
from trainwatch.core.model.checkpoint_suffixes import TENSOR_SUFFIXES, TensorFormat
from trainwatch.core.model.machine_details import GpuDetail
from trainwatch.core.model.observation import HostSample
from trainwatch.core.model.ports import OpenRun
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import RunCard
from trainwatch.core.sense.gpu.nvml_child import CHANGING, LASTING
from trainwatch.core.store import history_schema
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.columns import Column
from trainwatch.core.views.screens.run_list import RUN_COLUMNS, run_row
from trainwatch.core.views.state import status
from trainwatch.tui.keys import KEYS
from trainwatch.tui.panes import rows_pane
from trainwatch.tui.ui.cells import UNICODE

REPOSITORY = Path(__file__).parents[2]
HERE = f"{Path(__file__).parent.name}/{Path(__file__).name}"

PROOFS = {
    "a framework": f"{HERE}::test_a_preset_and_a_profile_are_one_file_each",
    "a usual name of a setting for the length of a training": "unit/test_told_length.py::test_a_usual_name_is_read",
    "a preset key": "unit/test_docs_settings.py::test_every_preset_key_is_read_somewhere",
    "a profile": f"{HERE}::test_a_preset_and_a_profile_are_one_file_each",
    "a remedy": f"{HERE}::test_a_remedy_is_named_nowhere_but_in_its_entry",
    "a failure class": "unit/test_diagnosis_new_class.py",
    "a failure message": "unit/test_diagnosis_new_class.py",
    "a status code (CUDA, HIP, NCCL, errno …)": "unit/test_diagnosis_logs.py::test_cause_and_place_of_a_short_end",
    "a way to put text before a log line": "unit/test_diagnosis_carriers.py::test_prefixes_of_carriers_are_removed",
    "a form of secrets (a prefix of tokens, a place in which one stands)": (
        "unit/test_secret_table.py::test_a_secret_of_the_table_never_leaves"
    ),
    "a log shape (a line that shows progress)": (
        "unit/test_progress_shapes.py::test_progress_a_shape_is_added_with_one_row"
    ),
    "a checkpoint suffix (of a format that is read already)": "unit/test_checkpoint_suffixes.py::test_a_suffix_is_added_in_one_row",
    "a checkpoint format": f"{HERE}::test_every_tensor_format_has_a_suffix_and_a_kind",
    "a checkpoint layout": f"{HERE}::test_every_layout_has_one_row_and_a_builder",
    "a rule of hang detection": "scenarios/test_families.py::test_sick",
    "a number of hang detection": "unit/test_hang_constants.py",
    "a program that starts the trainer elsewhere (a container engine, a launcher)": (
        "unit/test_wrappers.py::test_a_wrapper_is_read_up_to_the_command_behind_it"
    ),
    "a stop signal": f"{HERE}::test_a_stop_step_is_made_in_one_function",
    "a state of a run, or an event": "unit/test_run_machine.py::test_the_page_of_states_is_current",
    "a notice (what `[notify]` sends)": "unit/test_docs.py::test_every_notified_event_is_documented",
    "a setting": "unit/test_docs_settings.py::test_the_page_of_settings_is_current",
    "a rule of the restart policy": "unit/test_policy.py::test_every_rule_decides_one_of_the_cases",
    "a check of `trainwatch check`": "unit/test_check_host.py::test_every_check_is_in_one_list_of_checks",
    "a verb": f"{HERE}::test_a_verb_is_a_row_and_its_name",
    "a field of `status --json`": f"{HERE}::test_a_field_of_status_is_one_line",
    "a source of the trainer's own metrics": "unit/test_progress_metrics.py::test_metrics_are_kept_and_read_by_name",
    "a metric": f"{HERE}::test_a_metric_is_kept_with_one_row_of_columns",
    "a value that only the GPU page or the host page shows": f"{HERE}::test_every_detail_of_a_gpu_is_read",
    "a key of the screen": f"{HERE}::test_a_key_is_one_entry_of_its_screens_table",
    "a value of a run that the screen reads": f"{HERE}::test_every_service_of_a_run_is_handed_in",
    "a column of the list of runs": f"{HERE}::test_a_column_of_a_list_is_one_entry",
    "a column of a list that a verb prints": "unit/test_lists.py::test_a_column_of_numbers_is_right_aligned",
    "a column of the list of checkpoints": f"{HERE}::test_a_column_of_a_list_is_one_entry",
    "a kind of journal record": "unit/test_docs.py::test_the_journal_page_shows_every_kind_of_record_as_it_is",
    "a block of commands in a page": (
        "integration/test_docs_commands.py::test_every_block_has_a_scene_and_every_scene_a_block"
    ),
    "a package in `core/`": "integration/test_import_contracts.py::test_every_package_of_core_is_in_the_contracts",
}
"""What is added → the test that proves its row."""


def rows() -> dict[str, str]:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text().split("## Where to add what")[1].split("\n## ")[0]
    found = [line.strip("| ").split(" | ", 1) for line in text.splitlines() if line.startswith("| a ")]
    return {row[0]: row[1] for row in found}


def constants(names: set[str]) -> Iterator[tuple[Path, str]]:
    """(file, name) of all string constants that are one of the names and no docstring."""
    for path, tree in trees(*OURS, having=one_of(names)):
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in names and id(node) not in prose:
                yield path, str(node.value)


def test_every_row_has_a_proof() -> None:
    assert set(rows()) == set(PROOFS)


@pytest.mark.parametrize("proof", sorted(set(PROOFS.values())))
def test_a_proof_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    defined = {n.name for n in ast.walk(ast.parse((REPOSITORY / "tests" / file).read_text())) if hasattr(n, "name")}
    assert not name or name in defined


@pytest.mark.parametrize("what", rows())
def test_the_files_of_a_row_exist(what: str) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`|\]\(([^)]+)\)", rows()[what])
    paths = [code or link for code, link in named]
    assert paths or "pyproject.toml" in rows()[what]
    for path in paths:
        assert list(REPOSITORY.glob(path.replace("NAME", "*").rstrip("/"))), f"{path} does not exist"


def test_a_preset_and_a_profile_are_one_file_each(tmp_path: Path) -> None:
    for folder in ("presets", "profiles"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text('title = "Mine"\n')
    project = tmp_path / "trainwatch.toml"
    assert load_presets(project)["mine"].title == "Mine"
    assert load_profiles(project)["mine"].title == "Mine"
    page = (REPOSITORY / "docs" / "presets.md").read_text()
    assert all(f"| `{file.stem}` |" in page for file in (REPOSITORY / "configs" / "presets").glob("*.toml"))


def test_a_remedy_is_named_nowhere_but_in_its_entry() -> None:
    settings = {change.key for remedy in load_remedies() for change in remedy.changes}
    names = {remedy.name for remedy in load_remedies()} - settings
    assert [f"{path}: {text}" for path, text in constants(names)] == []
    assert [text for _, text in constants({"generic"})], "a name in a string would be found"


FRAMEWORKS = ("accelerate", "dcp", "deepspeed", "transformers")


def test_every_layout_has_one_row_and_a_builder() -> None:
    folder = REPOSITORY / "core" / "checkpoints" / "layouts"
    table = (folder / "directory.py").read_text()
    builders = (REPOSITORY / "tests" / "fakes" / "checkpoint_layouts.py").read_text()
    readers = [
        (node.name.removeprefix("read_"), node.name)
        for file in ("dcp.py", "frameworks.py")
        for node in ast.parse((folder / file).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name in {f"read_{name}" for name in FRAMEWORKS}
    ]
    assert len(readers) == len(FRAMEWORKS)
    for name, reader in readers:
        assert re.search(rf"_LAYOUTS.*\n(?:    .*\n)*    {reader},", table), f"{reader} is in no row of _LAYOUTS"
        assert name in builders


def test_every_tensor_format_has_a_suffix_and_a_kind() -> None:
    assert set(KIND_OF) == set(TENSOR_SUFFIXES.values()) == set(get_args(TensorFormat))


def test_every_detail_of_a_gpu_is_read() -> None:
    charted = {"clock_mem_mhz", "fan_pct", "pcie_received", "pcie_sent"}
    assert {*CHANGING, *LASTING} | charted == set(GpuDetail.__struct_fields__) - {"index"}


def test_every_service_of_a_run_is_handed_in() -> None:
    tree = ast.parse((REPOSITORY / "core" / "app" / "screen" / "run_picker.py").read_text())
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "OpenRun"
    ]
    assert {keyword.arg for keyword in call.keywords} == set(OpenRun.__struct_fields__)


def test_a_stop_step_is_made_in_one_function() -> None:
    made = [
        (path.name, function.name)
        for path, tree in trees("core", having="StopStep")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "StopStep"
    ]
    assert set(made) == {("stop_sequence.py", "stop_steps")}


def greet_verb(args: argparse.Namespace) -> int:
    sys.stdout.write(f"hello {args.whom}\n")
    return 0


def test_a_verb_is_a_row_and_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    heading, files = parser.SECTIONS["examine"]
    named = {**files, "examine": (*files["examine"], "greet")}
    monkeypatch.setitem(parser.SECTIONS, "examine", (heading, named))
    monkeypatch.setitem(examine.VERBS, "greet", Verb("greet", "Greets.", "you", (arg("whom"),), greet_verb))
    parser.verbs.cache_clear()
    try:
        assert main(["greet", "you"]) == 0
        assert capsys.readouterr().out == "hello you\n"
        with pytest.raises(SystemExit):
            main(["help", "all"])
        assert "  greet        greet\n" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main(["greet", "--help"])
        assert "example: trainwatch greet you" in capsys.readouterr().out
        assert main(["gret"]) == 2
        assert 'did you mean "greet"?' in capsys.readouterr().err
    finally:
        parser.verbs.cache_clear()


def test_a_field_of_status_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = RunSpec(id="luca-1", name="luca", command=("c",), cwd=str(tmp_path), created_wall=time.time())
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    RunDirectory.create(tmp_path / "home", spec)
    original = status.status_object

    def with_one_more(*args: Any, **named: Any) -> dict[str, Any]:
        return {**original(*args, **named), "mood": "fine"}

    monkeypatch.setattr(status, "status_object", with_one_more)
    assert main(["status", "luca", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mood"] == "fine"


def test_a_metric_is_kept_with_one_row_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = (*history_schema.COLUMNS["host"], ("ram_total", "ram_total_bytes"))
    monkeypatch.setitem(history_schema.COLUMNS, "host", more)
    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.add(HostSample(t=1.0, ram_total_bytes=64e9))
    writer.commit()
    writer.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        assert [mean for _, _, mean, _ in reader.series("host.ram_total", 0.0, 10.0, 10)] == [64e9]


def test_a_key_is_one_entry_of_its_screens_table() -> None:
    """Bindings, footer, help and palette are made of the tables; only dialogs bind keys themselves."""
    made = {
        path.parent.name + "/" + path.name
        for path, tree in trees("tui", having="Binding")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Binding"
    }
    assert {place for place in made if not place.startswith("dialogs/")} <= {
        "screens/place_screen.py", "screens/dashboard.py", "tui/app.py",
    }  # fmt: skip
    methods = {
        node.name
        for _, tree in trees("tui", having="def action_")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    operations = (REPOSITORY / "tui" / "operations.py").read_text()
    for key in KEYS:
        name = key.action.partition("(")[0].rpartition(".")[2]
        assert f"action_{name}" in methods or f'"{name}"' in operations, f"nothing performs {key.action}"


@pytest.mark.parametrize("columns", ["RUN_COLUMNS", "CHECKPOINT_COLUMNS"])
def test_a_column_of_a_list_is_one_entry(columns: str) -> None:
    """The pane draws whatever is in the tuple, and nothing else in the screen names its columns."""
    panes = [text for path in (REPOSITORY / "tui").rglob("*.py") if columns in (text := path.read_text())]
    assert len(panes) == 1
    assert re.search(rf"show_table\(\s*{columns}, ", panes[0])
    card = RunCard(id="a", name="a", state="running", watched=True, created_wall=0.0)
    row = run_row(card, 1.0)
    more = (*RUN_COLUMNS, Column(title="moon", text=lambda _row: "full", width=6))
    heading = "".join(part for _, part in rows_pane.heading_cells(more, [row], 200))
    cells = "".join(part for _, part in rows_pane.row_cells(more, row, [row], 200, UNICODE))
    assert "moon" in heading
    assert "full" in cells
