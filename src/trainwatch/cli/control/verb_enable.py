"""``trainwatch enable [RUN]``: let supervision come back after a reboot."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, printable, warn
from ..run_argument import add_run, run_of

HELP = "resume a run after a reboot, by systemd or cron"
DESCRIPTION = (
    "Writes a unit of systemd's user manager that supervises the run after a reboot (it resumes from the newest "
    "verified checkpoint) and replaces a supervisor that died or froze. If systemd does not run, the line for "
    "cron is printed or, under WSL2, for Windows. A unit of yours is never written over, nor is your crontab edited."
)
EXAMPLE = "--print"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--print", action="store_true", help="show what would be written, and write nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--yes", action="store_true", help="accepted for scripts; nothing is asked")


def act(args: argparse.Namespace) -> int:
    """0 if the unit is written, also if systemd does not run here: the line for cron is printed then."""
    from trainwatch.core.app.enable import enabling_of, switch_on, write_unit

    run = run_of(args)
    found = enabling_of(run)
    written, trouble = False, None
    if not args.print:
        written = write_unit(found)
        trouble = switch_on(found)
    undo = f"systemctl --user disable {found.path.name}; rm {found.path}"
    if args.json:
        print_json(
            {
                "unit": str(found.path),
                "text": found.unit,
                "written": written,
                "enabled": not args.print and trouble is None,
                "trouble": trouble,
                "cron": found.cron,
                "windows": found.windows,
                "undo": undo,
            }
        )
        return ExitCode.DONE
    if args.print:
        print(f"# {found.path}")
        print(found.unit)
        print(f"# without systemd, a line for `crontab -e`:\n{found.cron}")
    else:
        print(f"{printable(str(found.path))}: {'written' if written else 'is there already'}")
        if trouble is None:
            print(
                "it is started at the next boot; now: systemctl --user start "
                f"{found.path.name} (if no supervisor runs); it needs: loginctl enable-linger $USER"
            )
        else:
            warn(f"systemd does not start it here ({trouble})")
            print(f"without systemd, put this line into `crontab -e`:\n{found.cron}")
        print(f"undo: {undo}")
    if found.windows is not None:
        print(
            f"under WSL2, nothing runs before Windows starts the distribution; in a Windows terminal:\n{found.windows}"
        )
    return ExitCode.DONE
