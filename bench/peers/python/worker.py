"""A peer for the benchmark: the turn of an agent on Temporal's Python SDK alone. It runs until SIGTERM.

Environment: TEMPORAL_ADDRESS (host:port), TASK_QUEUE, and MODEL_URL (the base URL of the model, which ends with /v1).
It follows Temporal's AI cookbook, and for the options of the worker "Worker performance options" on docs.temporal.io.
"""

import asyncio
import os
import signal

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from activities import calculate, llm
from workflows import Turn


async def main() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
    worker = Worker(
        client,
        task_queue=os.environ["TASK_QUEUE"],
        workflows=[Turn],
        activities=[llm, calculate],
        max_concurrent_workflow_tasks=100,
        max_concurrent_activities=100,
        # The documentation recommends that pollers scale with the load.
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
    )
    async with worker:
        while not worker.is_running:
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
