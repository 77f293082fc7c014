"""Starts two agents of torchrun on loopback, as ``srun`` does on two nodes, and passes their output and signals on.

``two_agents.py PORT MAX_RESTARTS LOG_DIR WORKERS TRAINER ARGUMENTS…``. It ends when both have, with the worst status,
and by itself ends none of them: so does ``srun`` without ``--kill-on-bad-exit``.
"""

import signal
import subprocess
import sys


def main() -> int:
    port, restarts, logs, workers, *trainer = sys.argv[1:]
    agents = [
        subprocess.Popen([
            sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={workers}",
            f"--max-restarts={restarts}", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
            "--rdzv-id=job", f"--rdzv-conf=is_host={int(number == 0)},read_timeout=30", "--local-addr=127.0.0.1",
            "--tee=3", f"--log-dir={logs}", *trainer,
        ])
        for number in range(2)
    ]  # fmt: skip

    def passed_on(number: int, _frame: object) -> None:
        for agent in agents:
            agent.send_signal(number)

    signal.signal(signal.SIGINT, passed_on)
    signal.signal(signal.SIGTERM, passed_on)
    return max(abs(agent.wait()) for agent in agents)


if __name__ == "__main__":
    sys.exit(main())
