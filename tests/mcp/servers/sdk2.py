"""An MCP server of the SDK for Python since version 2, with the tools of `sdk.py`: `sdk2.py FOLDER [streamable-http PORT]`.

`sdk2.py FOLDER fastmcp` is a server of FastMCP.
"""

import sys
from pathlib import Path

import anyio

FOLDER = Path(sys.argv[1])
if sys.argv[2:3] == ["fastmcp"]:
    from fastmcp import FastMCP as Server
else:
    from mcp.server import MCPServer as Server
server = Server("sdk2")


@server.tool()
def echo(text: str) -> str:
    """Says it again."""
    return f"Echo: {text}"


async def noted(name: str) -> str:
    with (FOLDER / name).open("a") as notes:
        notes.write("call\n")
    if len((FOLDER / name).read_text().splitlines()) == 1:
        await anyio.sleep(600)
    return "done"


@server.tool()
async def once() -> str:
    """The tool once."""
    return await noted("once")


@server.tool()
async def read() -> str:
    """The tool read."""
    return await noted("read")


if __name__ == "__main__":
    match sys.argv[2:]:
        case ["streamable-http", port]:
            server.run("streamable-http", port=int(port))
        case _:
            server.run("stdio")
