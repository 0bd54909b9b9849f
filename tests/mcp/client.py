"""Drives `/mcp` with the official SDK for Python, which speaks the protocol without a handshake. The arguments are the URL, the
message and the idempotency key. Each line of the output is a JSON object with one field."""

import asyncio
import json
import sys

from mcp.client.client import Client


def say(name, value):
    print(json.dumps({name: value}), flush=True)


async def call(url, message, key):
    async with Client(url) as client:
        say("version", client.protocol_version)
        tools = await client.list_tools()
        say("tools", [tool.name for tool in tools.tools])

        async def progress(step, total, text):
            say("progress", text)

        try:
            result = await client.call_tool(
                "default",
                {"message": message},
                read_timeout_seconds=600,
                progress_callback=progress,
                meta={"everturn/idempotency_key": key},
            )
        except Exception as error:
            say("error", str(error))
        else:
            say("result", result.model_dump(mode="json", by_alias=True, exclude_none=True))


asyncio.run(call(*sys.argv[1:]))
