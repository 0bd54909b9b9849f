"""An MCP server that pays, and that tells whether a payment was made: `bank.py FOLDER`.

The file `mode` in the folder says how `pay` hangs and what `find_payment` does.
"""

import json
import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations

FOLDER = Path(sys.argv[1])
server = MCPServer("bank")


def key_of(context: Context) -> str:
    return context.request_context.meta["everturn/idempotency_key"]


def note(name: str, entry: dict) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(json.dumps(entry) + "\n")


@server.tool()
async def pay(amount: float, to: str, context: Context) -> str:
    """Pays. The first call never answers."""
    mode = (FOLDER / "mode").read_text()
    if mode != "before":
        note("payments", {"key": key_of(context), "amount": amount, "to": to})
    note("calls", {"key": key_of(context)})
    await anyio.sleep(600)
    return "paid"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def find_payment(amount: float, context: Context) -> dict:
    """Tells whether a payment was made."""
    note("probes", {"key": key_of(context), "amount": amount})
    if (FOLDER / "mode").read_text() == "broken":
        raise ValueError("the ledger is away")
    file = FOLDER / "payments"
    payments = file.read_text().splitlines() if file.exists() else []
    for payment in map(json.loads, payments):
        if payment["key"] == key_of(context):
            return {"outcome": "happened", "result": {"receipt": 7, "amount": payment["amount"]}}
    return {"outcome": "not_happened"}


if __name__ == "__main__":
    server.run("stdio")
