"""What could be started, answered from memory; checks wait for a gate where a test wants to see them under way."""

import threading
from collections.abc import Callable, Sequence

import msgspec

from trainwatch.core.model.launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest
from trainwatch.core.model.preset import Change

OFFERS = (
    LaunchOffer(name="luca", command="accelerate launch train_network.py --config_file luca.toml", profile="balanced"),
    LaunchOffer(name="mira", command="accelerate launch train_network.py --config_file mira.toml",
                profile="balanced", run_id="mira-2", state="finished"),
)  # fmt: skip
PROFILES = (
    ("balanced", "Balanced: fits 16 GB with room to spare"),
    ("conservative", "Conservative: survives anything, a third slower"),
    ("aggressive", "Aggressive: as fast as the card allows"),
)
CHECKS = (
    LaunchCheck(place=0, name="config", result="pass", found="/data/luca/trainwatch.toml: run luca, preset kohya"),
    LaunchCheck(place=1, name="launch", result="pass", found="profile balanced, 3 settings differ from your config"),
    LaunchCheck(place=2, name="command", result="pass", found="/data/venv/bin/accelerate"),
    LaunchCheck(place=3, name="data", result="pass", found="4 paths exist"),
    LaunchCheck(place=4, name="disk", result="warn", found="61 GB free in /data/outputs, 12 checkpoints need 10.4 GB "
                "each: it fills at step 5,100", remedy="keep fewer: [checkpoints] keep_last = 5"),
    LaunchCheck(place=5, name="torch", result="pass", found="2.9.1 with CUDA 12.8, sees 1 GPU"),
    LaunchCheck(place=6, name="gpu", result="pass", found="RTX 4080, 15.4 of 16.0 GB free"),
    LaunchCheck(place=7, name="vram", result="pass", found="balanced was measured at 15.2 GB, 15.4 GB are free"),
    LaunchCheck(place=8, name="tmux", result="pass", found="/usr/bin/tmux"),
    LaunchCheck(place=9, name="logout", result="pass", found="nothing here ends a user's processes at logout"),
)  # fmt: skip
FAILED = LaunchCheck(
    place=3, name="data", result="fail", found="not there: train_data_dir = /data/img",
    remedy="correct the paths (they start at /data/luca) or fetch it",
)  # fmt: skip


class FakeLauncher:
    """Remembers what was started."""

    def __init__(
        self,
        offers: Sequence[LaunchOffer] = OFFERS,
        checks: Sequence[LaunchCheck] = CHECKS,
        trouble: str = "",
        refusal: str = "",
    ) -> None:
        self.given, self.given_checks, self.trouble, self.refusal = tuple(offers), tuple(checks), trouble, refusal
        self.started: list[LaunchRequest] = []
        self.planned: list[LaunchRequest] = []
        self.gate = threading.Event()
        self.gate.set()

    def offers(self) -> Sequence[LaunchOffer]:
        if self.trouble:
            raise RuntimeError(self.trouble)
        return self.given

    def plan(self, order: LaunchRequest) -> LaunchPreview:
        self.planned.append(order)
        offer = next((o for o in self.given if o.name == order.run), None)
        profile = order.profile or (offer.profile if offer is not None else None)
        changes = {
            "conservative": (Change(where="config", key="vae_batch_size", before=2, after=1),),
            "aggressive": (Change(where="config", key="vae_batch_size", before=2, after=4),),
            "balanced": (
                Change(where="config", key="gradient_checkpointing", before=False, after=True),
                Change(where="config", key="max_data_loader_n_workers", before=8, after=2),
                Change(where="env", key="PYTORCH_CUDA_ALLOC_CONF", before=None, after="expandable_segments:True"),
            ),
        }
        return LaunchPreview(
            name=order.run or "train_network", preset="kohya", preset_why="recognised from the command",
            command=tuple((offer.command if offer is not None else order.command).split()), cwd="/data/luca",
            config=f"/data/luca/{order.run}.toml" if order.run else None, output_dir="/data/outputs/luca",
            profile=profile, profiles=PROFILES, changes=changes.get(profile or "", ()),
        )  # fmt: skip

    def check(self, order: LaunchRequest, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        for check in self.given_checks:
            seen(msgspec.structs.replace(check, result=None, found="", remedy=""))
        for number, check in enumerate(self.given_checks):
            while number > 2 and not self.gate.wait(0.01) and wanted():
                pass
            if not wanted():
                return
            seen(check)

    def start(self, order: LaunchRequest) -> str:
        if self.refusal:
            raise RuntimeError(self.refusal)
        self.started.append(order)
        return "mira-2"
