"""A real stack, ``everturn dev``, for tests of the README."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

_START_SECONDS = 60


class Stack:
    """Everything in one process, with the demo model. Its data stay when it is killed."""

    def __init__(self, binary: Path, folder: Path, config: str) -> None:
        self._binary = binary
        self._folder = folder
        self._port, self._temporal_port = _free_ports()
        self.url = f"http://127.0.0.1:{self._port}"
        (folder / "everturn.toml").write_text(config, "utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        ports = ["--listen", f"127.0.0.1:{self._port}", "--temporal-port", str(self._temporal_port)]
        files = ["--config", "everturn.toml", "--data-dir", "data"]
        with (self._folder / "log").open("ab") as log:
            command = [str(self._binary), "dev", *ports, *files]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            log_text = (self._folder / "log").read_text("utf-8", "replace")
            assert self._process.poll() is None, log_text
            assert time.monotonic() < deadline, log_text
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False


def binary() -> Path:
    """The binary: that of EVERTURN_BIN, else of a debug build."""
    return Path(os.environ.get("EVERTURN_BIN") or Path(__file__).parents[3] / "target" / "debug" / "everturn")


def _free_ports() -> tuple[int, int]:
    """Two ports, for the gateway and for Temporal, whose web UI takes the one a thousand above.

    They are below those that connections get, so that none of them takes one until a server listens there.
    """
    while True:
        port = 10_000 + 2_000 * random.randrange(5) + 2 * random.randrange(500)
        if all(map(_is_free, (port, port + 1, port + 1_001))):
            return port, port + 1


def _is_free(port: int) -> bool:
    with socket.socket() as free:
        try:
            free.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
