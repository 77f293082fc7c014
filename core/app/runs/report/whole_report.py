"""The whole report of a run, with facts about this machine: the driver is asked while the rest is loaded and read."""

from typing import TYPE_CHECKING

from ...errors import CliError, ExitCode
from .machine_facts import asking_machine

if TYPE_CHECKING:
    from ....store.run_directory import RunDirectory
    from ....views.report.report import Report


def report_of(run: "RunDirectory") -> "Report":
    """The report of a run. Raises CliError if a newer trainwatch wrote its journal."""
    with asking_machine() as machine:
        from ....store.journal import JournalTooNew
        from ....views.report.report_building import build_report, with_machine
        from .sources import gather

        try:
            now, sources = gather(run, log_ends=True)
            return with_machine(build_report(now, sources), machine(), sources.spec)
        except JournalTooNew as error:
            raise CliError(ExitCode.FAILED, str(error)) from None
