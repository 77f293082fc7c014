"""Makes a release: version, changelog section, commit, tag, wheel, sdist and an offline bundle. Publishes nothing.

``./trainwatch.sh release 0.2.0`` calls it, in a clean checkout. The bundle is the wheel and those of all that it needs,
for the Python that runs this; it is installed without an index. Each other Python of this machine installs the wheel
from the package index; both supervise a short training (``--no-smoke`` leaves that out). If the checkout has a remote
``origin`` on a web server, the distribution gets its addresses, and the links of the README that are relative to the
checkout are made whole in it, so that it reads the same on a package index.
"""

import argparse
import datetime as dt
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/trainwatch/__init__.py"
VERSION = re.compile(r'__version__ = "([^"]+)"')
NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?")
UNRELEASED = "## Unreleased\n"
TRAINING = "import time\nfor n in range(1, 21): print(f'step {n}/20 loss {1 / n:.3f}', flush=True); time.sleep(0.1)\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


class NotReleasedError(Exception):
    """Why no release was made, and what to do."""


def order(version: str) -> tuple[int, int, int, bool, str]:
    """What versions are compared by: 0.2.0rc1 is before 0.2.0. Raises NotReleasedError."""
    found = NUMBER.fullmatch(version)
    if found is None:
        raise NotReleasedError(f"{version!r} is no version: write it as 0.2.0 or 0.2.0rc1")
    major, minor, patch, before = found.groups()
    return int(major), int(minor), int(patch), before is None, before or ""


def released_changelog(text: str, version: str, date: str) -> tuple[str, str]:
    """The changelog with the entries so far under the version, with an empty section before it; and the entries."""
    head, found, rest = text.partition(UNRELEASED)
    entries = rest.split("\n## ", 1)[0].strip()
    if not found or not entries:
        raise NotReleasedError("CHANGELOG.md has no entries under ## Unreleased: there is nothing to release")
    return f"{head}{UNRELEASED}\n## {version} ({date})\n{rest}", entries


def web_address(remote: str) -> str | None:
    """The address of a repository in a browser, from the URL of its remote; None if it has none."""
    found = re.fullmatch(
        r"(?:https?://(?:[^@/]+@)?|git@|ssh://git@)([\w.-]+\.[a-z]+)[:/]([\w./-]+?)(?:\.git)?/?", remote
    )
    return f"https://{found[1]}/{found[2]}" if found else None


def whole_links(readme: str, address: str, tag: str) -> str:
    """The README with links that lead somewhere from any place: pages as the server shows them, pictures as files."""

    def whole(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if re.match(r"[a-z]+:|#|/", target):
            return found[0]
        kind = "raw" if mark else "blob"
        return f"{mark}[{words}]({address}/{kind}/{tag}/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", whole, readme)


def readable_anywhere(readme: str, address: str | None, tag: str) -> str:
    """The README for a package index. Without an address pictures are left out, and links are their words."""
    if address is not None:
        return whole_links(readme, address, tag)
    without_pictures = re.sub(r"^!\[[^\]]*\]\((?![a-z]+:)[^)]*\)\n\n?", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?![a-z]+:|#)[^)\s]+\)", r"\1", without_pictures)


def with_addresses(pyproject: str, address: str) -> str:
    """``[project.urls]``, before the scripts."""
    urls = (
        f'[project.urls]\nHomepage = "{address}"\nDocumentation = "{address}/tree/main/docs"\n'
        f'Changelog = "{address}/blob/main/CHANGELOG.md"\nIssues = "{address}/issues"\n\n'
    )
    return (
        pyproject
        if "[project.urls]" in pyproject
        else pyproject.replace("[project.scripts]", urls + "[project.scripts]")
    )


def run(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """The output of a command. Raises NotReleasedError."""
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReleasedError(f"{' '.join(words[:4])} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout.strip()


def release(root: Path, version: str, *, smoke: bool) -> list[Path]:
    """Make it; returns the files in ``dist/``. Raises NotReleasedError; until the commit nothing is left changed."""
    if run("git", "status", "--porcelain", cwd=root):
        raise NotReleasedError("there are uncommitted changes: commit them, or `git stash`")
    tag = f"v{version}"
    source = root / VERSION_FILE
    found = VERSION.search(source.read_text())
    assert found is not None
    before = found[1]
    if order(version) < order(before) or (version == before and tag in run("git", "tag", cwd=root).split()):
        raise NotReleasedError(f"{version} does not follow {before}")
    changelog, notes = released_changelog((root / "CHANGELOG.md").read_text(), version, dt.date.today().isoformat())  # noqa: DTZ011
    source.write_text(source.read_text().replace(f'"{before}"', f'"{version}"', 1))
    (root / "CHANGELOG.md").write_text(changelog)
    try:
        wheel, sdist = build(root, version)
        offline = bundle(wheel)
        if smoke:
            started(sys.executable, offline)
            for python in pythons():
                started(python, wheel)
        run("git", "commit", "-qam", f"release: {version}", cwd=root)
    except NotReleasedError:
        run("git", "checkout", "-q", "--", VERSION_FILE, "CHANGELOG.md", cwd=root)
        raise
    run("git", "tag", "-a", tag, "--cleanup=whitespace", "-m", f"trainwatch {version}", "-m", notes, cwd=root)
    return [wheel, sdist, offline]


def build(root: Path, version: str) -> tuple[Path, Path]:
    """Wheel and sdist of the files of this checkout, with whole links."""
    dist = root / "dist"
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "copy")
        for name in run("git", "ls-files", cwd=root).splitlines():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target, follow_symlinks=False)
        remotes = run("git", "remote", cwd=root).split()
        address = web_address(run("git", "remote", "get-url", "origin", cwd=root)) if "origin" in remotes else None
        readme, project = copy / "README.md", copy / "pyproject.toml"
        readme.write_text(readable_anywhere(readme.read_text(), address, f"v{version}"))
        if address is None:
            print("no remote `origin` on a web server: the distribution has no project addresses", file=sys.stderr)
        else:
            project.write_text(with_addresses(project.read_text(), address))
        run(sys.executable, "-m", "hatchling", "build", "-d", str(dist), cwd=copy)
    return dist / f"trainwatch_tui-{version}-py3-none-any.whl", dist / f"trainwatch_tui-{version}.tar.gz"


def bundle(wheel: Path) -> Path:
    """An archive of the wheel and those of all that it needs, for this Python. Raises NotReleasedError."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    name = f"{'-'.join(wheel.name.split('-')[:2])}-offline-cp{sys.version_info[0]}{sys.version_info[1]}-{platform}"
    archive = wheel.with_name(f"{name}.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        pip = (sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:")
        run(*pip, "-d", place, str(wheel), cwd=wheel.parent)
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(place, name)
    return archive


def pythons() -> list[str]:
    """The other Pythons of this machine that can make an environment, one for each version."""
    found = []
    for version in PYTHONS:
        if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            continue
        program = shutil.which(f"python{version}")
        ready = program and subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True, check=False)
        if program and ready and ready.returncode == 0:
            found.append(program)
    return found


def started(python: str, source: Path) -> None:
    """Install it in a clean environment, and supervise a short training with it. Raises NotReleasedError.

    ``source``: the wheel, or the bundle, from which all comes then.
    """
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        env = {"HOME": name, "TRAINWATCH_HOME": f"{name}/state", "PATH": f"{name}/env/bin:/usr/bin:/bin"}
        run(python, "-m", "venv", f"{name}/env", cwd=place)
        words = [str(source)]
        if source.suffix == ".gz":
            with tarfile.open(source) as packed:
                packed.extractall(place / "wheels", filter="data")
            words = ["--no-index", "--find-links", str(next((place / "wheels").iterdir())), "trainwatch-tui"]
        pip = (f"{name}/env/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, *words, cwd=place)
        (place / "train.py").write_text(TRAINING)
        trainwatch = f"{name}/env/bin/trainwatch"
        said = run(trainwatch, "--version", cwd=place, env=env)
        run(trainwatch, "--help", cwd=place, env=env)
        run(trainwatch, "doctor", cwd=place, env=env)
        run(trainwatch, "run", "--headless", "--output-dir", "out", "--", "python", "train.py", cwd=place, env=env)
        state = run(trainwatch, "status", cwd=place, env=env).partition("\n")[0]
        if ": finished" not in state:
            raise NotReleasedError(f"with {python} a short training ended so: {state}")
        print(f"{python}: {said}, {state}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./trainwatch.sh release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="the new version, such as 0.2.0")
    parser.add_argument("--no-smoke", action="store_true", help="do not install and start the wheel")
    args = parser.parse_args()
    try:
        for path in release(ROOT, args.version, smoke=not args.no_smoke):
            print(path)
    except NotReleasedError as error:
        print(f"no release was made: {error}", file=sys.stderr)
        return 1
    print(f"tagged v{args.version}; nothing was pushed or published: `git push --follow-tags`, then upload dist/*")
    return 0


if __name__ == "__main__":
    sys.exit(main())
