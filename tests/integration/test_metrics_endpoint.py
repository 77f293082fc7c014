"""The endpoint for Prometheus of a real supervisor: a port that is taken is a trouble of the run, which goes on."""

import contextlib
import socket
import urllib.request

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER


def page(port: int) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        return str(reply.read().decode())
    return ""


@SECOND_TIER
def test_the_supervisor_serves_its_run_once_the_port_is_free(world: World) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = int(other.getsockname()[1])
        world.write("--steps", "100000", more={"metrics": {"prometheus": f"127.0.0.1:{port}"}})
        other.listen()
        world.headless()
        world.in_state("running")
        until(lambda: any(t["kind"] == "metrics_endpoint" for t in world.status()["troubles"]), "a trouble")
    until(lambda: f'trainwatch_run_state{{run="{world.run.id}",state="running"}} 1' in page(port), "the page")
    assert f'trainwatch_supervisor_up{{run="{world.run.id}"}} 1' in page(port)
