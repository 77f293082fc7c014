"""The token without which the screen in the browser shows nothing."""

import hmac
import os
import secrets
import stat
from pathlib import Path

from trainwatch.core.app.errors import CliError, ExitCode

TOKEN_BYTES = 24
DERIVED = 32
SHORTEST = 16
"""Characters of a token that a person chose."""


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_in(path: Path) -> str:
    """The token of a file that only its owner can read; a missing file is made with a new token."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{path}: {error.strerror}") from None
    token = new_token()
    with os.fdopen(file, "w") as out:
        out.write(token + "\n")
    return token


def _read(path: Path) -> str:
    try:
        mode, token = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(ExitCode.FAILED, f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CliError(ExitCode.FAILED, f"{path} can be read by others: chmod 600 {path}")
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise CliError(ExitCode.FAILED, f"{path}: a token has {SHORTEST} printable characters or more, without blanks")
    return token


def derived(token: str, use: str) -> str:
    """What only who knows the token can compute, for one use; the same after a restart with the same token."""
    return hmac.new(token.encode(), use.encode(), "sha256").hexdigest()[:DERIVED]


def is_token(given: str, token: str) -> bool:
    """Compared in the same time wherever they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
