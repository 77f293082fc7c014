"""Which disk of /etc/fstab is missing below a path."""

from pathlib import Path

import pytest

from trainwatch.core.mounts import unmounted_place

FSTAB = """# <device> <place> <type> <options>
UUID=1 / ext4 defaults 0 1
UUID=2 none swap sw 0 0
nas:/export /mnt/nas nfs4 _netdev 0 0
nas:/sub /mnt/nas/sub nfs4 _netdev 0 0
//box/share /mnt/my\\040disk cifs noauto 0 0
#nas:/old /mnt/old nfs4 _netdev 0 0
"""
ROOT = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
NAS = "30 22 0:40 / /mnt/nas rw - nfs4 nas:/export rw\n"


@pytest.mark.parametrize(
    ("path", "mountinfo", "place"),
    [
        ("/mnt/nas/out", ROOT, "/mnt/nas"),
        ("/mnt/nas", ROOT, "/mnt/nas"),
        ("/mnt/nas/out", ROOT + NAS, None),
        ("/mnt/nas/sub/out", ROOT + NAS, "/mnt/nas/sub"),
        ("/mnt/nas2/out", ROOT, None),
        ("/mnt/my disk/out", ROOT, "/mnt/my disk"),
        ("/mnt/old/out", ROOT, None),
        ("/home/me/out", ROOT, None),
    ],
)
def test_a_disk_of_fstab_that_is_not_mounted_is_named(path: str, mountinfo: str, place: str | None) -> None:
    assert unmounted_place(Path(path), FSTAB, mountinfo) == place
