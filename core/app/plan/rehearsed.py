"""What an earlier rehearsal of the same command and source proved, for its next start."""

import msgspec

from ...model.run import RunSpec


def resuming_by_itself(spec: RunSpec) -> RunSpec:
    """The run whose trainer is known to find its newest checkpoint by itself: it need not be told which one."""
    restart = msgspec.structs.replace(spec.settings.restart, if_not_told="go_on")
    return msgspec.structs.replace(spec, settings=msgspec.structs.replace(spec.settings, restart=restart))
