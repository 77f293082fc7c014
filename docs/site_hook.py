"""Puts the pages of the repository's top folder into the site, and mends the links to and from them (mkdocs.yml)."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
TO_TOP = re.compile(rf"\]\(((?:\.\./)*)\.\./({'|'.join(map(re.escape, TOP))})")


def on_files(files: Files, *, config: Any) -> Files:
    """Each page of the top folder, in lower case beside index.md."""
    for name in TOP:
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(((?:README|CONTRIBUTING|SECURITY|CHANGELOG)\.md)", lambda m: f"]({m[1].lower()}", text)
        files.append(File.generated(config, name.lower(), content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page with its links to the top folder as they are in the site."""
    return TO_TOP.sub(lambda m: f"]({m[1]}{m[2].lower()}", markdown)
