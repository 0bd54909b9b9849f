"""A server of FastMCP whose tool tells its progress and writes to its log."""

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


server.run("stdio", show_banner=False)
