"""The environment of a launch: preset, inherited variables, [run] env, profile, remedies, each before the next."""

from collections.abc import Mapping, Sequence

from ...model.launch.change import Change
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from .change_log import Setting, net


def environment(
    spec: RunSpec, preset: Preset, profile: Profile | None, changes: Sequence[Change], *, base: Mapping[str, str]
) -> tuple[dict[str, str], list[Change]]:
    """The trainer's whole environment, and the changes of profile and remedies. A preset overrides nothing."""
    env = {**preset.env, **base, **spec.env}
    if spec.gpus is not None and "CUDA_VISIBLE_DEVICES" not in spec.env:
        # CUDA's default order begins with the fastest GPU; the indices of [run] gpus are those of nvidia-smi.
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        env["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in spec.gpus)
    wanted = (
        [Setting(k, v, f"profile {profile.name}", of="profile") for k, v in profile.env.items()]
        if profile is not None
        else []
    )
    wanted += [Setting(c.key, c.after, c.why) for c in changes if c.where == "env"]
    made = []
    for setting in wanted:
        before = env.get(setting.key)
        after = None if setting.value is None else str(setting.value)
        if after is None:
            env.pop(setting.key, None)
        else:
            env[setting.key] = after
        made.append(Change(where="env", key=setting.key, before=before, after=after, why=setting.why, of=setting.of))
    return env, net(made)
