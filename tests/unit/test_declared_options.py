"""Options that remedies may change: those that the script declares, and that its command can be given."""

from pathlib import Path

from trainwatch.core.app.plan.declared_options import declared_options
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.model.run import RunSpec

SEARCH = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--safe_mode", action="store_true", help="no Triton, no compile")
parser.add_argument("--disable_triton", action="store_true")
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--colour")
args = parser.parse_args()
"""


def declared(folder: Path, text: str, *command: str) -> frozenset[str]:
    (folder / "search.py").write_text(text)
    spec = RunSpec(id="r", name="r", command=command or ("python", "search.py"), cwd=str(folder), created_wall=0.0)
    return declared_options(spec, load_remedies())


def test_options_of_the_script_that_a_remedy_names(tmp_path: Path) -> None:
    assert declared(tmp_path, SEARCH) == {"--safe_mode", "--disable_triton", "--batch_size"}


def test_a_name_that_is_no_option_is_not_taken(tmp_path: Path) -> None:
    assert declared(tmp_path, "safe_mode = True  # batch_size, compile\n") == frozenset()
    assert declared(tmp_path, "print('hello')\n") == frozenset()


def test_without_a_script_nothing_is_known(tmp_path: Path) -> None:
    assert declared(tmp_path, SEARCH, "python", "gone.py") == frozenset()
    assert declared(tmp_path, SEARCH, "./trainer.bin") == frozenset()
