"""The sensor of kernel messages about GPUs and memory (``/dev/kmsg``)."""

import contextlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Unpack

from ...atomic_files import opened
from ...model.observation import KernelLine, TerminationNotice
from ...processes import file_text
from ..sampler import Common, Sampler

RELEVANT = re.compile(
    r"NVRM|\bXid\b|nvidia|dxgk|dxgvmb|\bdxg\b|[Oo]ut of memory|oom[-_]kill|oom_reaper|Killed process|"
    r"I/O error|segfault at|general protection|blocked for more than|\bamdgpu\b"
)
RECORD_BYTES = 8192
"""The kernel returns one record per read and refuses a buffer that is too small for it."""
READ_S = 1.0
"""Period of reading."""
LINES_PER_S = 50
"""Most lines per second that are put into the inbox. A failing disk causes thousands."""


def parse_record(record: bytes) -> str | None:
    r"""Message of a record ``prio,sequence,time,flags;text\n KEY=value…``; None if it is invalid."""
    head, separator, text = record.decode("utf-8", "replace").partition(";")
    if not separator or not head[:1].isdigit():
        return None
    message = text.split("\n", 1)[0]
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), message)


def records(fd: int) -> Iterator[tuple[bytes, str | None]]:
    """The records that wait, each with its message. Raises OSError; ends with an empty one at the end of a pipe."""
    while True:
        try:
            record = os.read(fd, RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue  # records were overwritten before they were read; the next read continues after them
        yield record, parse_record(record)
        if not record:
            return


def kernel_tail(lines: int, device: str = "/dev/kmsg") -> list[str]:
    """The last lines of the kernel's buffer, with seconds since boot. Raises OSError if it is not readable."""
    kept: deque[str] = deque(maxlen=lines)
    with opened(device, os.O_RDONLY | os.O_NONBLOCK) as fd:
        for record, text in records(fd):
            fields = record.split(b",", 3)
            since = f"[{int(fields[2]) / 1e6:.6f}] " if len(fields) > 2 and fields[2].isdigit() else ""
            kept.extend(() if text is None else (f"{since}{text}",))
    return list(kept)


class KernelLog(Sampler):
    """Puts a KernelLine for each new relevant line. If the log is not readable, it reports that once."""

    name = "kernel log"

    def __init__(self, *, device: str = "/dev/kmsg", interval_s: float = READ_S, **common: Unpack[Common]) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._device = device
        self._fd: int | None = None
        self._over = False
        self._second, self._lines = 0.0, 0

    def close(self) -> None:
        with self._turn:
            self._end()

    def sample(self) -> None:
        """Read what is new; at the first call only later messages count."""
        if self._over:
            return
        if self._fd is None:
            self._fd = self._open()
        if self._fd is not None:
            self._read(self._fd)

    def _open(self) -> int | None:
        try:
            fd = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as fault:
            self._over = True
            self._problems.report(
                self._device,
                f"{self._device}: the kernel log cannot be read ({fault.strerror}); GPU faults (Xid) and OOM kills are "
                "known only from the training's own log (sysctl kernel.dmesg_restrict=0 or group adm may allow it)",
            )
            return None
        with contextlib.suppress(OSError):  # a pipe (in tests) cannot seek and has only new lines
            os.lseek(fd, 0, os.SEEK_END)
        return fd

    def _read(self, fd: int) -> None:
        try:
            for record, text in records(fd):
                if not record:
                    self._end()  # the end of a pipe; the device has none
                if not record or self._stopping:
                    return
                if text is None or RELEVANT.search(text) is None:
                    continue
                if time.monotonic() - self._second > 1.0:
                    self._second, self._lines = time.monotonic(), 0
                self._lines += 1
                if self._lines <= LINES_PER_S:
                    self._inbox.put(KernelLine(t=self._clock.now(), text=text))
        except OSError as fault:
            self._problems.report(
                self._device, f"{self._device}: reading ended ({fault!r}); kernel messages are not seen"
            )
            self._end()

    def _end(self) -> None:
        self._over = True
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


# The sensor of a cloud's notice that it will end this machine (spot and preemptible instances).
#
# Sources: AWS "Spot Instance interruption notices" (``spot/instance-action``, two minutes before), Google Cloud
# "Preemptible VM instances" (``instance/preempted``, 30 s), Azure "Scheduled Events" (``scheduledevents``, 30 s for a
# Preempt); the names in the firmware tables are those of cloud-init (``ds-identify``).
#
# The metadata service is asked only on a machine whose firmware tables say that it is of that cloud, or if the
# settings name the cloud: anywhere else the address belongs to nobody, or to somebody else. Each request has a time
# limit and is made in a thread of its own. No proxy is used.

POLL_S = 5.0
"""AWS advises to ask every five seconds; the others give 30 s."""
TIMEOUT_S = 2.0
MOST_BYTES = 65536

Cloud = Literal["aws", "gcp", "azure"]
ENDING = frozenset({"Preempt", "Terminate", "Reboot", "Redeploy"})
"""Azure's events that end processes."""
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"


def _aws_notice(body: str) -> str | None:
    """``{"action": "terminate", "time": "2017-09-18T08:22:00Z"}``."""
    found = _object(body)
    return f"AWS will {found.get('action') or 'end'} this spot instance at {found.get('time') or 'an unknown time'}"


def _azure_notice(body: str) -> str | None:
    """``{"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT", …}]}``."""
    events = _object(body).get("Events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and event.get("EventType") in ENDING:
            when = event.get("NotBefore") or "an unknown time"
            return f"Azure will {str(event['EventType']).lower()} this machine, not before {when}"
    return None


class Service(NamedTuple):
    """A cloud's metadata service. ``notice``: of an answer, as a sentence. ``token``: where AWS gives one (IMDSv2)."""

    name: str
    address: str
    path: str
    headers: Mapping[str, str]
    notice: Callable[[str], str | None]
    token: str = ""


SERVICES: dict[Cloud, Service] = {
    "aws": Service(
        "AWS", "http://169.254.169.254", "/latest/meta-data/spot/instance-action", {}, _aws_notice, "/latest/api/token"
    ),
    "gcp": Service(
        "Google Cloud",
        "http://metadata.google.internal",
        "/computeMetadata/v1/instance/preempted",
        {"Metadata-Flavor": "Google"},
        lambda body: "Google Cloud preempts this machine within 30 s" if body.strip().upper() == "TRUE" else None,
    ),
    "azure": Service(
        "Azure",
        "http://169.254.169.254",
        "/metadata/scheduledevents?api-version=2020-07-01",
        {"Metadata": "true"},
        _azure_notice,
    ),
}


def ask(service: Service, address: str) -> str | None:
    """The notice as a sentence, None = there is none. Raises OSError, ValueError."""
    headers = dict(service.headers)
    if service.token:
        wanted = {"X-aws-ec2-metadata-token-ttl-seconds": "60", "Content-Length": "0"}
        status, body = _request(address, "PUT", service.token, wanted)
        headers |= {"X-aws-ec2-metadata-token": body.strip()} if status == 200 else {}
    status, body = _request(address, "GET", service.path, headers)
    if status not in {200, 404}:
        raise OSError(f"HTTP status {status}")
    return service.notice(body) if status == 200 else None


def _request(address: str, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Status and body. Raises OSError within about TIMEOUT_S."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(address.partition("://")[2], timeout=TIMEOUT_S)
    try:
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES).decode("utf-8", "replace")
    except HTTPException as fault:
        raise OSError(str(fault) or type(fault).__name__) from fault
    finally:
        connection.close()


def cloud_of(root: Path = Path("/")) -> Cloud | None:
    """The cloud that this machine's firmware tables (DMI) name; None if they name none or cannot be read."""

    def field(name: str) -> str:
        return file_text(root / "sys/class/dmi/id" / name).strip()

    if field("sys_vendor") == "Amazon EC2":
        return "aws"
    if field("product_name") == "Google Compute Engine":
        return "gcp"
    if field("chassis_asset_tag") == AZURE_TAG:
        return "azure"
    return None


class TerminationNotices(Sampler):
    """Puts a TerminationNotice when the cloud announces the end of this machine, once for each text.

    ``cloud`` None: there is nothing to ask. ``address``: another address of the service.
    """

    name = "notices"

    def __init__(
        self, *, cloud: Cloud | None, address: str | None = None, poll_s: float = POLL_S, **common: Unpack[Common]
    ) -> None:
        super().__init__(interval_s=poll_s, **common)
        self._service = None if cloud is None else SERVICES[cloud]
        self._address = address
        self._told = ""

    def start(self) -> None:
        """Start the thread; without a cloud there is none."""
        if self._service is not None:
            super().start()

    def sample(self) -> None:
        if self._service is None:
            return
        try:
            text = ask(self._service, self._address or self._service.address)
        except (OSError, ValueError) as fault:
            why = f"{self._service.name}'s notices of termination cannot be read: {fault}"
            self._problems.report("service", f'{why}; [watch] termination_notices = "off" asks no more')
            return
        self._problems.clear("service")
        if text is not None and text != self._told:
            self._told = text
            self._inbox.put(TerminationNotice(t=self._clock.now(), text=text))


def _object(body: str) -> dict[str, object]:
    found = json.loads(body)
    return found if isinstance(found, dict) else {}
