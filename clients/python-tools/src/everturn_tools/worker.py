"""The worker that runs the tools."""

import asyncio
import os
import signal
import sys
from datetime import timedelta

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from .codec import data_converter
from .tool import HEARTBEAT_SECONDS, TOOLS

DEFAULT_ADDRESS = "127.0.0.1:7233"
GRACE = timedelta(seconds=10)


def task_queue(named: str | None = None) -> str:
    """Returns the task queue of the tools: TASK_QUEUE, else the name in the code, else `python-tools`."""
    return os.environ.get("TASK_QUEUE") or named or "python-tools"


async def run(queue: str | None = None) -> None:
    """Runs every tool of the program, until cancelled.

    The connection to Temporal follows the variables of Temporal's SDKs: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
    TEMPORAL_API_KEY, TEMPORAL_TLS and further ones. With EVERTURN_CODEC_KEYS, payloads are encrypted.

    Raises ConnectionError when Temporal cannot be reached.
    """
    if not TOOLS:
        raise ValueError("There is no tool to run: put @tool before a function.")
    settings = ClientConfig.load_client_connect_config()
    settings.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        client = await Client.connect(**settings, data_converter=data_converter())
    except RuntimeError as error:
        address = settings["target_host"]
        raise ConnectionError(f"Temporal at {address} cannot be reached: set TEMPORAL_ADDRESS. ({error})") from error
    # The SDK holds heartbeats back until 80 % of their time-out is over. Sent each second, heartbeats leave a slow
    # engine more time, and bring a cancel sooner.
    worker = Worker(
        client,
        task_queue=task_queue(queue),
        activities=[tool.activity() for tool in TOOLS.values()],
        max_heartbeat_throttle_interval=timedelta(seconds=HEARTBEAT_SECONDS),
        graceful_shutdown_timeout=GRACE,
    )
    await worker.run()


def serve(queue: str | None = None) -> None:
    """Runs every tool of the program until Ctrl-C or SIGTERM. Calls that run get ten seconds to end."""
    try:
        asyncio.run(_until_stopped(queue))
    except ConnectionError as error:
        sys.exit(str(error))


async def _until_stopped(queue: str | None) -> None:
    running = asyncio.ensure_future(run(queue))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return
