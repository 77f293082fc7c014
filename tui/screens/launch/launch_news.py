"""What changes outside while the launch screen is open: a run that is started elsewhere, an edited trainwatch.toml."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ....core.model.launch.launch_preview import LaunchOffer
from .launch_inquiry import LaunchInquiry, LaunchPlace
from .launch_start import LaunchStart

NEWS_S = 3.0
"""How often it is looked for news, seconds: some lock files are tried; the offers are read again only if it changed."""


class NewsPlace(LaunchPlace, Protocol):
    """The screen that shows the offers."""

    inquiry: LaunchInquiry
    start: LaunchStart

    @property
    def is_active(self) -> bool:
        """Whether no other screen or dialog is over it."""
        ...

    @property
    def offer(self) -> LaunchOffer | None:
        """The one under the cursor."""
        ...

    def renew_offers(self, offers: tuple[LaunchOffer, ...], trouble: str) -> None:
        """Show other offers; the cursor stays where it is."""
        ...


class LaunchNews:
    """Looks in a thread of the screen; draws nothing while nothing changed."""

    def __init__(self, screen: NewsPlace) -> None:
        self._on = screen
        self._mark: object = None
        self._looking = False

    def look(self) -> None:
        """Look once. Not while a start is under way, which is news of our own."""
        launcher, screen = self._on.launcher, self._on
        if launcher is None or self._looking or screen.start.under_way or screen.inquiry.offers is None:
            return
        if not screen.is_active:
            return
        self._looking = True

        def work() -> Callable[[], None]:
            try:
                mark = launcher.mark()
                if mark == self._mark:
                    return self._done
                offers, trouble = tuple(launcher.offers()), ""
            except Exception as error:
                mark, offers, trouble = None, (), str(error)
            return lambda: self._take(mark, offers, trouble)

        screen.tasks.submit(work)

    def _done(self) -> None:
        self._looking = False

    def _take(self, mark: object, offers: tuple[LaunchOffer, ...], trouble: str) -> None:
        screen, self._looking = self._on, False
        if screen.start.under_way:
            return  # the next look sees it
        self._mark = mark
        before = screen.inquiry.offers or ()
        if (offers, trouble) == (before, screen.inquiry.file_trouble):
            return
        screen.renew_offers(offers, trouble)
        began = _began(before, offers)
        if began:
            chosen = screen.offer is not None and screen.offer.run_id == began[0].run_id
            how = "Enter opens it" if chosen else "choose it, and Enter opens it"
            screen.show_message(f"{began[0].name} was started elsewhere: {how}.")


def _began(before: Sequence[LaunchOffer], now: Sequence[LaunchOffer]) -> list[LaunchOffer]:
    known = {offer.run_id for offer in before}
    return [offer for offer in now if offer.run_id is not None and offer.run_id not in known]
