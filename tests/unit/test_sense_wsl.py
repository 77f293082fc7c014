"""Linux on Windows, by files made for it."""

from pathlib import Path

import pytest

from trainwatch.core.sense.host.host_sensor import is_wsl


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n", True),
        ("proc/version", "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", True),
        ("proc/version", "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", False),
        ("dev/dxg", "", True),  # a kernel of one's own, with the GPU channel
        ("etc/hostname", "microsoft", False),
    ],
)
def test_wsl_is_detected_by_kernel_name_or_gpu_channel(tmp_path: Path, name: str, text: str, expected: bool) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert is_wsl(tmp_path) is expected
