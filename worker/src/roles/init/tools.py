from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))  # may run again after a crash
def order_status(order: int) -> str:
    """The status of an order."""
    return {1007: "shipped on Monday", 1008: "in the kettle"}.get(order, "unknown")


server.run()
