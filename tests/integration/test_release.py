"""./trainwatch.sh release: version, changelog, tag and distribution, in a repository of its own."""

import re
import runpy
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tiers import SECOND_TIER

DOCS = Path(__file__).parents[2] / "docs"
made = SimpleNamespace(**runpy.run_path(str(DOCS / "make_release.py")))


def test_the_manual_page_is_current() -> None:
    written = runpy.run_path(str(DOCS / "make_pages.py"))["manual"]()
    assert (DOCS / "trainwatch.1").read_text("utf-8") == written, "run: python docs/make_pages.py"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_page_has_no_warning() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(DOCS / "trainwatch.1")], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_versions_are_ordered_and_a_wrong_one_is_refused() -> None:
    versions = ["0.1.0", "0.2.0a1", "0.2.0rc1", "0.2.0", "0.10.0", "1.0.0"]
    assert sorted(versions, key=made.order) == versions
    with pytest.raises(made.NotReleasedError, match=r"write it as 0\.2\.0"):
        made.order("v0.2")


def test_the_entries_so_far_get_the_version() -> None:
    text = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n"
    found, notes = made.released_changelog(text, "0.2.0", "2026-11-22")
    assert notes == "- new"
    assert found == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-22)\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n"
    )
    with pytest.raises(made.NotReleasedError, match="nothing to release"):
        made.released_changelog(found, "0.3.0", "2026-11-23")


@pytest.mark.parametrize("address", [None, "https://example.org/ann/trainwatch"])
def test_the_readme_renders_on_a_package_index(address: str | None) -> None:
    markdown = pytest.importorskip("readme_renderer.markdown", reason="./trainwatch.sh setup --dev installs it")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    shown = markdown.render(made.readable_anywhere(readme, address, "v0.2.0"))
    assert shown is not None
    pictures = re.findall(r'<img src="([^"]+)"', shown)
    assert [picture for picture in pictures if not picture.startswith("https://")] == []
    assert bool(pictures) == bool(address)
    links = re.findall(r'href="([^"]+)"', shown)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "<h2" in shown
    assert shown.count("<pre>") == len(re.findall(r"^```$", readme, re.MULTILINE)) / 2


@SECOND_TIER
def test_a_release_is_one_command_and_a_second_one_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    names = subprocess.run(
        ["git", "ls-files"], cwd=DOCS.parent, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        if (DOCS.parent / name).exists() or (DOCS.parent / name).is_symlink():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(DOCS.parent / name, root / name, follow_symlinks=False)

    def git(*words: str) -> str:
        config = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        return subprocess.run(["git", *config, *words], cwd=root, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    git("config", "user.name", "ann")
    git("config", "user.email", "ann@example.org")
    git("remote", "add", "origin", "git@example.org:ann/trainwatch.git")
    git("add", "-A")
    git("commit", "-qm", "start")
    built = made.release(root, "9.9.0", smoke=False)
    assert [path.name.partition("-9.9.0")[2][:8] for path in built] == ["-py3-non", ".tar.gz", "-offline"]
    assert git("tag", "-n9").splitlines()[0].split() == ["v9.9.0", "trainwatch", "9.9.0"]
    assert "**Do no harm**" in git("tag", "-n99")
    assert git("log", "--format=%s").splitlines()[0] == "release: 9.9.0"
    assert git("status", "--porcelain") in {"", "?? dist/\n"}
    wheel = zipfile.ZipFile(next(path for path in built if path.suffix == ".whl"))
    about = wheel.read(next(n for n in wheel.namelist() if n.endswith("METADATA"))).decode()
    assert "Version: 9.9.0" in about
    assert "Project-URL: Changelog, https://example.org/ann/trainwatch/blob/main/CHANGELOG.md" in about
    assert "](docs/" not in about
    assert any(name.endswith("share/man/man1/trainwatch.1") for name in wheel.namelist())
    shutil.rmtree(root / "dist")
    with pytest.raises(made.NotReleasedError, match=r"9\.9\.0 does not follow 9\.9\.0"):
        made.release(root, "9.9.0", smoke=False)
    (root / "README.md").write_text("changed")
    with pytest.raises(made.NotReleasedError, match="uncommitted changes"):
        made.release(root, "9.10.0", smoke=False)
