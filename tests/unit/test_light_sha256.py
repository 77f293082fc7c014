"""SHA-256 without OpenSSL is the same SHA-256, and is there when Python has none of its own."""

import hashlib
import subprocess
import sys

from trainwatch.core.light_sha256 import sha256


def said(program: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/")
    return done.stdout.strip(), done.stderr


def test_the_digest_is_that_of_hashlib() -> None:
    for data in (b"", b"a", bytes(range(256)) * 33):
        assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()


def test_openssl_is_not_loaded_by_it_and_is_there_for_others_afterwards() -> None:
    program = (
        "import sys\n"
        "from trainwatch.core.light_sha256 import sha256\n"
        "print('_hashlib' in sys.modules, 'logging' in sys.modules)\n"
        "import hashlib, logging\n"
        "print('_hashlib' in sys.modules, hasattr(logging, 'getLogger'))"
    )
    assert said(program) == ("False False\nTrue True", "")


def test_a_python_without_its_own_code_takes_openssl_and_says_nothing() -> None:
    # Some distributions build Python without it, for FIPS.
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('_sha256', '_sha2', '_md5', '_sha1')))\n"
        "from trainwatch.core.light_sha256 import sha256\n"
        "print(sha256(b'a').hexdigest()[:8], '_hashlib' in sys.modules)"
    )
    assert said(program) == ("ca978112 True", "")
