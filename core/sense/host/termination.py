"""The sensor of a cloud's notice that it will end this machine (spot and preemptible instances).

Sources: AWS "Spot Instance interruption notices" (``spot/instance-action``, two minutes before), Google Cloud
"Preemptible VM instances" (``instance/preempted``, 30 s), Azure "Scheduled Events" (``scheduledevents``, 30 s for a
Preempt); the names in the firmware tables are those of cloud-init (``ds-identify``).

The metadata service is asked only on a machine whose firmware tables say that it is of that cloud, or if the settings
name the cloud: anywhere else the address belongs to nobody, or to somebody else. Each request has a time limit and is
made in a thread of its own. No proxy is used.
"""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ...model.observation import TerminationNotice
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ..sampler import JOIN_S
from ..sensor_problem import OnProblem, ProblemReport, ignore_problem

POLL_S = 5.0
"""AWS advises to ask every five seconds; the others give 30 s."""
TIMEOUT_S = 2.0
MOST_BYTES = 65536

Cloud = Literal["aws", "gcp", "azure"]
Get = Callable[[str, Mapping[str, str]], str | None]
"""Path and headers → the body; None if the service says that there is nothing (404). Raises OSError."""
ENDING = frozenset({"Preempt", "Terminate", "Reboot", "Redeploy"})
"""Azure's events that end processes."""
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"


class Service(NamedTuple):
    """A cloud's metadata service. ``ask``: the notice as a sentence, None = there is none."""

    name: str
    address: str
    ask: Callable[["Metadata"], str | None]


class Metadata:
    """Requests to one metadata service. ``base``: ``http://HOST[:PORT]``."""

    def __init__(self, base: str) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(base)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._token: str | None = None

    def request(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """Status and body. Raises OSError within about TIMEOUT_S."""
        from http.client import HTTPConnection, HTTPException

        connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(MOST_BYTES).decode("utf-8", "replace")
        except HTTPException as fault:
            raise OSError(str(fault) or type(fault).__name__) from fault
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str]) -> str | None:
        """The body; None for 404. Raises OSError for any other status but 200."""
        status, body = self.request("GET", path, headers)
        if status == 404:
            return None
        if status != 200:
            raise OSError(f"HTTP status {status}")
        return body

    def aws_headers(self) -> Mapping[str, str]:
        """The session token of IMDSv2; none if the service has only version 1."""
        if self._token is None:
            status, body = self.request(
                "PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "21600", "Content-Length": "0"}
            )
            self._token = body.strip() if status == 200 else ""
        return {"X-aws-ec2-metadata-token": self._token} if self._token else {}

    def forget_token(self) -> None:
        """Ask for a new token next time."""
        self._token = None


def ask_aws(service: Metadata) -> str | None:
    """``{"action": "terminate", "time": "2017-09-18T08:22:00Z"}``."""
    try:
        body = service.get("/latest/meta-data/spot/instance-action", service.aws_headers())
    except OSError:
        service.forget_token()  # it may have expired
        raise
    if body is None:
        return None
    found = _object(body)
    return f"AWS will {found.get('action') or 'end'} this spot instance at {found.get('time') or 'an unknown time'}"


def ask_gcp(service: Metadata) -> str | None:
    """``TRUE`` or ``FALSE``."""
    body = service.get("/computeMetadata/v1/instance/preempted", {"Metadata-Flavor": "Google"})
    if body is None or body.strip().upper() != "TRUE":
        return None
    return "Google Cloud preempts this machine within 30 s"


def ask_azure(service: Metadata) -> str | None:
    """``{"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT", …}]}``."""
    body = service.get("/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"})
    events = _object(body).get("Events") if body is not None else None
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and event.get("EventType") in ENDING:
            when = event.get("NotBefore") or "an unknown time"
            return f"Azure will {str(event['EventType']).lower()} this machine, not before {when}"
    return None


SERVICES: dict[Cloud, Service] = {
    "aws": Service("AWS", "http://169.254.169.254", ask_aws),
    "gcp": Service("Google Cloud", "http://metadata.google.internal", ask_gcp),
    "azure": Service("Azure", "http://169.254.169.254", ask_azure),
}


def cloud_of(root: Path = Path("/")) -> Cloud | None:
    """The cloud that this machine's firmware tables (DMI) name; None if they name none or cannot be read."""

    def field(name: str) -> str:
        try:
            return (root / "sys/class/dmi/id" / name).read_text("utf-8", "replace").strip()
        except OSError:
            return ""

    if field("sys_vendor") == "Amazon EC2":
        return "aws"
    if field("product_name") == "Google Compute Engine":
        return "gcp"
    if field("chassis_asset_tag") == AZURE_TAG:
        return "azure"
    return None


class TerminationNotices:
    """Puts a TerminationNotice when the cloud announces the end of this machine, once for each text.

    ``address``: another address of the service (tests, a proxy of one's own).
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        cloud: Cloud | None,
        address: str | None = None,
        poll_s: float = POLL_S,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._service = None if cloud is None else SERVICES[cloud]
        self._address = address
        self._poll_s = poll_s
        self._problems = ProblemReport(on_problem)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; without a cloud there is none."""
        if self._service is None:
            return
        self._thread = threading.Thread(target=self._run, args=(self._service,), name="sense-notices", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Do nothing: the machine is the same for all attempts."""

    def stop(self) -> None:
        """End the thread; a request in progress is left to its time limit."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _run(self, service: Service) -> None:
        metadata, told = Metadata(self._address or service.address), ""
        while not self._stopping.is_set():
            try:
                text = service.ask(metadata)
            except (OSError, ValueError) as fault:
                why = f"{service.name}'s notices of termination cannot be read: {fault}"
                self._problems.report("notices", f'{why}; [watch] termination_notices = "off" asks no more')
            else:
                self._problems.clear("notices")
                if text is not None and text != told:
                    told = text
                    self._inbox.put(TerminationNotice(t=self._clock.now(), text=text))
            self._stopping.wait(self._poll_s)


def _object(body: str) -> dict[str, object]:
    found = json.loads(body)
    return found if isinstance(found, dict) else {}
