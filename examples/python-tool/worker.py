"""Two tools for Everturn: `transfer` must not happen twice, and `statement` only reads. Both keep to one file, LEDGER."""

import asyncio
import os
from pathlib import Path

from everturn_tools import Call, ToolError, serve, tool

LEDGER = Path(os.environ.get("LEDGER", "ledger.txt"))
LARGE = 10_000


def write(line: str) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")


@tool(effect="once")
async def transfer(call: Call, amount: float, seconds: float = 0) -> dict:
    """Transfers an amount of money."""
    if amount <= 0:
        raise ToolError("An amount must be positive.")
    write(f"{call.execution_id} {amount}")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:  # the turn was cancelled: take the transfer back
        write(f"{call.execution_id} {-amount}")
        raise
    booked = {"booked": amount, "key": call.idempotency_key, "tool_call_id": call.tool_call_id, "tenant_id": call.tenant_id}
    if amount < LARGE:
        return booked
    # Everturn takes the events out of the result, and adds them to the turn.
    return booked | {"everturn/events": [{"type": "pattern_match", "data": {"pattern": "large_transfer", "amount": amount}}]}


@tool(effect="read")
async def statement(seconds: float = 0, copies: int = 1) -> str:
    """Lists the transfers so far."""
    await asyncio.sleep(seconds)
    return "\n".join((LEDGER.read_text().splitlines() if LEDGER.exists() else []) * copies)


if __name__ == "__main__":
    serve()
