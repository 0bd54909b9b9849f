"""Two tools for Everturn in Python: activities on a task queue of their own.

`transfer` must not happen twice; `statement` only reads. Both keep to one file, LEDGER. A large statement is sent to the
gateway at EVERTURN_URL, with the key EVERTURN_TOKEN where one is needed. With EVERTURN_CODEC_KEYS, what goes through
Temporal is encrypted (codec.py).
"""

import asyncio
import json
import os
import urllib.request
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from codec import data_converter

LEDGER = Path(os.environ.get("LEDGER", "ledger.txt"))
GATEWAY = os.environ.get("EVERTURN_URL")
# A larger result does not fit into what Everturn takes from an activity.
LARGE = 100_000


@dataclass
class Call:
    """The one argument of a tool's activity. Fields that a later Everturn adds are ignored."""

    tool_name: str
    tool_call_id: str
    execution_id: str
    conversation_id: str
    message_id: str
    idempotency_key: str
    effect: str
    run_id: str
    tenant_id: str = ""
    owner_id: str = ""
    agent: str = ""
    attempt: int = 1
    tool_input: dict[str, Any] = field(default_factory=dict)


def write(line: str) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")


async def wait(seconds: float) -> None:
    """Takes its time, with heartbeats: they show that the worker lives, and bring a cancel."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        activity.heartbeat()
        await asyncio.sleep(0.2)


def store(call: Call, result: Any) -> None:
    """Sends a result to the gateway while the activity runs. What the activity gives back then makes no difference."""
    path = f"/api/v1/agent/conversations/{quote(call.conversation_id)}/remote-tools/{quote(call.execution_id)}"
    body = json.dumps({"run_id": call.run_id, "result": result}).encode()
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("EVERTURN_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{GATEWAY}{path}", body, headers)
    urllib.request.urlopen(request, timeout=30).close()


@activity.defn
async def transfer(call: Call) -> dict[str, Any]:
    # `temporal workflow reset` may start this activity again, for another run than the one that claimed the call.
    if call.run_id != activity.info().workflow_run_id:
        raise ApplicationError("The workflow was reset while the transfer was made.", type="OutcomeUnknown")
    amount = call.tool_input["amount"]
    if amount <= 0:
        raise ApplicationError("An amount must be positive.")
    write(f"{call.execution_id} {amount}")
    try:
        await wait(call.tool_input.get("seconds", 0))
    except asyncio.CancelledError:
        write(f"{call.execution_id} {-amount}")
        raise
    return {"booked": amount, "key": call.idempotency_key, "tool_call_id": call.tool_call_id, "tenant_id": call.tenant_id}


@activity.defn
async def statement(call: Call) -> str | None:
    await wait(call.tool_input.get("seconds", 0))
    entries = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    text = "\n".join(entries * call.tool_input.get("copies", 1))
    if GATEWAY is None or len(text) < LARGE:
        return text
    await asyncio.to_thread(store, call, text)
    return None


async def main() -> None:
    address = os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233")
    client = await Client.connect(address, data_converter=data_converter())
    queue = os.environ.get("TASK_QUEUE", "python-tools")
    # By default the SDK sends a heartbeat when 80 % of the time-out is over. Sent each second, they leave a slow engine
    # more time, and bring a cancel sooner.
    heartbeats = timedelta(seconds=1)
    worker = Worker(
        client, task_queue=queue, activities=[transfer, statement], max_heartbeat_throttle_interval=heartbeats
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
