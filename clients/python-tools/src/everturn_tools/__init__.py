"""Remote tools of Everturn: see README.md."""

from .call import Call
from .errors import OutcomeUnknown, ToolError
from .tool import Tool, tool
from .worker import run, serve

__all__ = ["Call", "OutcomeUnknown", "Tool", "ToolError", "run", "serve", "tool"]
