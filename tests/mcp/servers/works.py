"""A server of FastMCP: a tool tells its progress and writes to its log, and another tool does not answer."""

import asyncio

from fastmcp import Context, FastMCP

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


server.run("stdio", show_banner=False)
