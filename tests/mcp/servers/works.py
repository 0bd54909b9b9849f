"""A server of FastMCP: a tool tells its progress and writes to its log, another tool does not answer, and two ask the person."""

import asyncio

from fastmcp import Context, FastMCP
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)

STEPS = 150
server = FastMCP("works")


@server.tool
async def work(ctx: Context) -> str:
    """Works for three seconds, with fifty steps a second."""
    await ctx.info("the work begins")
    for step in range(STEPS):
        await ctx.report_progress(step, STEPS, f"step {step}")
        await asyncio.sleep(3 / STEPS)
    return "done"


@server.tool
async def lose() -> str:
    """Does not answer."""
    await asyncio.sleep(600)
    return "too late"


BOOKING = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "count": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 8},
    },
    "required": ["name", "count"],
}


@server.tool
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name and a count of seats."""
    match (ctx.input_responses or {}).get("booking"):
        case None:
            form = ElicitRequestFormParams(message="Who travels, and on how many seats?", requested_schema=BOOKING)
            return InputRequiredResult(input_requests={"booking": ElicitRequest(params=form)})
        case ElicitResult(action="accept", content=dict(content)):
            return f"{content['count']} seats for {content['name']}"
        case _:
            return "nobody travels"


@server.tool
async def pay(ctx: Context) -> str | InputRequiredResult:
    """Asks to pay at an address."""
    match (ctx.input_responses or {}).get("payment"):
        case None:
            address = ElicitRequestURLParams(message="Please pay.", url="https://pay.example/7")
            return InputRequiredResult(input_requests={"payment": ElicitRequest(params=address)})
        case ElicitResult(action="accept"):
            return "paid"
        case _:
            return "not paid"


server.run("stdio", show_banner=False)
