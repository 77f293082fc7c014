import pytest

from trainwatch.core.sense.host.disk_space import filesystem_type, is_network_filesystem

MOUNTS = r"""22 27 0:21 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs
31 22 0:31 / /data rw - nfs4 server:/export rw
32 22 0:32 / /data/fast rw - ext4 /dev/vdb rw
33 22 0:33 / /home/me/cloud\040drive rw - fuse.sshfs me@host: rw
34 22 0:34 / /over rw - ext4 /dev/vdc rw
35 22 0:35 / /over rw - virtiofs tag rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/home/me", "ext4", False),
        ("/mnt/c/outputs", "9p", True),
        ("/mnt/cc", "ext4", False),
        ("/data/out", "nfs4", True),
        ("/data", "nfs4", True),
        ("/data/fast/out", "ext4", False),
        ("/data/faster", "nfs4", True),
        ("/home/me/cloud drive/x", "fuse.sshfs", True),
        ("/over/x", "virtiofs", True),
    ],
)
def test_the_longest_mount_point_decides(path: str, kind: str, network: bool) -> None:
    assert filesystem_type(path, MOUNTS) == kind
    assert is_network_filesystem(path, MOUNTS) is network


def test_unknown_mount_gives_no_filesystem_type() -> None:
    assert filesystem_type("/x", "") is None
    assert not is_network_filesystem("/x", "")
