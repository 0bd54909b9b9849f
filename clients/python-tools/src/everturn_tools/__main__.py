"""`python -m everturn_tools describe MODULE`: prints the tools of a module as configuration of Everturn."""

import argparse
import importlib
import json
import sys
from typing import Any

from .tool import TOOLS, Tool
from .worker import task_queue


def toml(value: Any) -> str:
    """Writes a value of JSON as TOML on one line."""
    if isinstance(value, dict):
        fields = ", ".join(f"{_key(key)} = {toml(field)}" for key, field in value.items())
        return f"{{ {fields} }}" if fields else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def table(tool: Tool, queue: str) -> str:
    """Returns the table `[remote_tools.NAME]` of a tool."""
    fields = {
        "description": tool.description,
        "effect": tool.effect,
        "task_queue": queue,
        "heartbeat_timeout": tool.heartbeat_timeout,
        "input": tool.input,
    }
    lines = [f"{name} = {toml(value)}" for name, value in fields.items()]
    return "\n".join([f"[remote_tools.{_key(tool.name)}]", *lines, ""])


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m everturn_tools")
    commands = parser.add_subparsers(dest="command", required=True)
    describe = commands.add_parser("describe", help="print the tools of a module as tables for everturn.toml")
    describe.add_argument("module", help="the module with the tools, like my_tools")
    describe.add_argument("--task-queue", help="the task queue of the worker; default: python-tools")
    options = parser.parse_args()
    sys.path.insert(0, "")
    importlib.import_module(options.module)
    print("\n".join(table(tool, task_queue(options.task_queue)) for tool in TOOLS.values()), end="")


if __name__ == "__main__":
    main()
