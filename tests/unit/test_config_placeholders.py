"""Words in braces: misspelt ones of ours are named, the trainer's own are left alone."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from trainwatch.cli.examine import replay_verb as replay
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.plan.specs import Definitions, bare_spec
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.launch_checks import check_ladder
from trainwatch.core.config.project import Overrides, misspelt
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Profiles, Settings


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("{cofig}", "{config}"),
        ("{Config}", "{config}"),
        ("--output_dir={output}", "{output_dir}"),
        ("{outputdir}/sub", "{output_dir}"),
        ("--resume={resum}", "{resume}"),
        ("python t.py --resume {resmue}", "{resume}"),
        ("{profiles}", "{profile}"),
    ],
)
def test_a_misspelt_placeholder_suggests_the_nearest_valid_one(word: str, meant: str) -> None:
    (said,) = misspelt(("bash", "-c", word))
    assert said.endswith(f'did you mean "{meant}"?')


def test_an_unknown_placeholder_lists_the_valid_ones() -> None:
    (said,) = misspelt(("python", "t.py", "{checkpoint}"))
    assert said == (
        "the command uses the unknown placeholder {checkpoint}; there are: {config} {output_dir} {resume} {profile}"
    )


@pytest.mark.parametrize(
    "word",
    [
        "{config}",
        "--resume={resume}",
        '{"lr": 3, "betas": [0.9, 0.99]}',
        "{'a':{'b':1}}",
        'print(f"{result} {results:.2f}")',
        "print(f'{profiler} {configs}')",
        "${CONFIG}",
        "${cofig}",
        "{{cofig}}",
        "{}",
        "{1}",
        "{a,b}",
        "--name={model}-{lr}",
        "sed 's/x/{line}/'",
    ],
)
def test_braces_that_are_not_placeholders_are_kept(word: str) -> None:
    assert list(misspelt(("python", "t.py", word))) == []


def test_a_misspelt_placeholder_on_the_command_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r'unknown placeholder \{cofig\}; did you mean "\{config\}"'):
        bare_spec(["x", "{cofig}"], Overrides(), Definitions(presets={}, profiles={}), tmp_path)


def test_a_profile_outside_the_ladder_is_a_warning(tmp_path: Path) -> None:
    def found(use: str | None, *ladder: str) -> object:
        settings = Settings(profiles=Profiles(use=use, ladder=ladder))
        spec = RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0.0, settings=settings)
        return check_ladder(LaunchPlan(spec=spec), Machine(home=tmp_path))

    assert found(None, "safe") is None
    assert found("balanced") is None
    assert found("safe", "safe", "fast") is None
    told = found("balanced", "safe", "fast")
    assert getattr(told, "result", None) == "warn"
    assert "balanced is not in profiles.ladder (safe, fast)" in getattr(told, "found", "")


def test_a_replay_with_an_unknown_profile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jsonl").write_text('{"t":0,"kind":"tick"}\n')
    with pytest.raises(CliError, match=r'--set profiles.use=balancd: unknown profile; did you mean "balanced"\?'):
        replay(SimpleNamespace(trace="t.jsonl", set=["profiles.use=balancd"], json=True))  # type: ignore[arg-type]
