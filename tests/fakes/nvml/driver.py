"""Builds the fake library once per session and hands a test its state file. Import the fixtures to use them."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "fake_nvml.c"


class FakeNvml:
    """One test's driver: what it shows stands in ``state``; edits are seen at the next call."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state

    def show(self, text: str) -> None:
        """Replace the state atomically."""
        fresh = self.state.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.state)


@pytest.fixture(scope="session")
def fake_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds ``libnvidia-ml.so.1``, built once: each module that imports this fixture has its own."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc): the real NVML client is not tested against the fake driver library")
    folder = tmp_path_factory.getbasetemp() / "nvml-library"
    library = folder / "libnvidia-ml.so.1"
    if library.exists():
        return folder
    folder.mkdir(exist_ok=True)
    flags = ["-O1", "-std=gnu11", "-fvisibility=hidden", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([compiler, *flags, "-w", "-o", str(library), str(SOURCE), "-lpthread"], check=True)
    return folder


@pytest.fixture
def fake_nvml(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """A fake driver for the processes this test starts (the loader reads LD_LIBRARY_PATH at their start)."""
    state = tmp_path / "nvml.state"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_library))
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))
    return FakeNvml(fake_nvml_library, state)
