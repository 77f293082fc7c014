"""Which folders a rehearsal covers with overlays."""

from pathlib import Path

from trainwatch.core.act.overlay import folders_to_cover
from trainwatch.core.mounts import mount_points

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:27 / /dev/shm rw - tmpfs tmpfs rw
33 27 0:30 / /mnt/big\040disk rw,relatime master:2 - xfs /dev/sdb rw
34 27 0:31 / /mnt/archive ro,relatime - nfs4 nas:/archive ro
35 27 0:32 / /var/lib/docker rw - ext4 /dev/vdc rw
36 33 0:33 / /mnt/big\040disk rw,relatime - overlay overlay rw
"""


def test_every_folder_of_the_user_is_covered_but_not_the_scratch_folder(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("home/u/project/out", "home/u/state/scratch", "home/u/data", "data/sets"):
        (root / name).mkdir(parents=True)
    mounts = [*mount_points(f"40 1 0:1 / {root} rw - ext4 /dev/sda rw\n41 40 0:2 / {root}/data rw - xfs /dev/sdb rw\n")]

    scratch = f"{root}/home/u/state/scratch"
    covered = folders_to_cover(mounts, scratch, [f"{root}/home/u/project"])

    assert covered == [f"{root}/data", f"{root}/home/u/data", f"{root}/home/u/project"]
    assert not any(scratch.startswith(place) for place in covered), "an overlay cannot write into what it covers"

    apart = folders_to_cover(mounts, "/elsewhere", [f"{root}/home/u/project"])
    assert apart == [str(root), f"{root}/data"]
    each = folders_to_cover(mounts, "/elsewhere", [f"{root}/home/u/project"], each=True)
    assert each == [str(root), f"{root}/data", f"{root}/home/u/project"]


def test_system_folders_devices_and_read_only_mounts_are_left_alone() -> None:
    covered = folders_to_cover(mount_points(MOUNTS), "/nowhere", [])
    assert not {"/usr", "/etc", "/proc", "/dev", "/dev/shm", "/var", "/var/lib/docker", "/mnt/archive"} & set(covered)


def test_a_working_folder_inside_a_system_folder_is_covered_by_itself() -> None:
    assert "/var/tmp" in folders_to_cover(mount_points(MOUNTS), "/nowhere", ["/var/tmp"])
