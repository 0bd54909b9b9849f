"""An MCP server of the SDK for Python before version 2: `sdk.py FOLDER [sse|streamable-http PORT]`.

The first call of `once` and of `read` notes itself in the folder and takes ten minutes. Later calls answer at once.
"""

import asyncio
import sys
from pathlib import Path

import anyio
import mcp.types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

FOLDER = Path(sys.argv[1])
server = Server("sdk")


@server.list_tools()
async def tools() -> list[types.Tool]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    names = ["echo", "once", "read"]
    return [types.Tool(name=name, description=f"The tool {name}.", inputSchema=schema) for name in names]


@server.call_tool()
async def call(name: str, arguments: dict) -> list[types.TextContent]:
    text = f"Echo: {arguments.get('text')}"
    if name != "echo":
        with (FOLDER / name).open("a") as notes:
            notes.write("call\n")
        if len((FOLDER / name).read_text().splitlines()) == 1:
            await anyio.sleep(600)
        text = "done"
    return [types.TextContent(type="text", text=text)]


async def over_pipes() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_sse(port: int) -> None:
    import uvicorn
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def listen(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", endpoint=listen), Mount("/messages/", app=transport.handle_post_message)]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error")


def over_http(port: int) -> None:
    import contextlib

    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def life(_app):
        async with manager.run():
            yield

    async def handle(scope, receive, send):
        await manager.handle_request(scope, receive, send)

    app = Starlette(routes=[Mount("/mcp", app=handle)], lifespan=life)
    uvicorn.run(app, port=port, log_level="error")


if __name__ == "__main__":
    match sys.argv[2:]:
        case ["sse", port]:
            over_sse(int(port))
        case ["streamable-http", port]:
            over_http(int(port))
        case _:
            asyncio.run(over_pipes())
