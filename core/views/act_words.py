"""What trainwatch does without a person, in words."""

from ..model.settings import Act, Settings

ACT_WORDS: dict[Act, str] = {
    "all": "it acts by itself",
    "ask": 'act = "ask": it ends and starts nothing before you answer',
    "notify": 'act = "notify": it only notifies; it ends and starts nothing',
}


def by_itself(settings: Settings) -> str:
    """What will be done without a person, and how to have it otherwise; one sentence."""
    match settings.restart.act:
        case "all":
            number = settings.restart.max_restarts
            restarts = "never" if number == 0 else f"at most {number} time{'' if number == 1 else 's'}"
            doing = [
                "ends a trainer that hangs",
                f"restarts one that hung or crashed ({restarts} without a new checkpoint in between)",
            ]
            if settings.profiles.ramp:
                doing.append("switches between the profiles of the ladder")
            if settings.checkpoints.keep_last:
                doing.append(f"deletes checkpoints of this run but the newest {settings.checkpoints.keep_last}")
            listed = ", ".join(doing[:-1]) + f" and {doing[-1]}"
            return f"without you it {listed}; --act ask asks you first, --act notify only tells you"
        case "ask":
            return (
                "it ends, starts and deletes nothing without your answer: it asks, with what each answer costs "
                "(--act all acts by itself, --act notify only tells you)"
            )
        case "notify":
            return (
                "it ends, starts and deletes nothing: it tells you, and the report has what it would have done "
                "(--act all acts by itself, --act ask asks you first)"
            )
