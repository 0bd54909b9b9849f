"""A peer for the benchmark: the same turn in a plain script, with no durability at all. It ends when stdin ends.

It reads one user message per line, runs all turns at the same time, and prints `done` for each finished turn. Its
environment is MODEL_URL alone. It follows the README of openai-python (async usage), and shares the model and the tool
with the peer in Python, so that the difference between the two is Temporal.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import model


async def turn(text: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    while True:
        reply = await model.complete(messages)
        messages.append(reply)
        calls = reply.get("tool_calls")
        if not calls:
            return reply["content"]
        messages.extend(await asyncio.gather(*(run_tool(call) for call in calls)))


async def run_tool(call: dict[str, Any]) -> dict[str, Any]:
    tools = {"calculate": model.calculate}
    return model.tool_message(call, tools[call["function"]["name"]](**model.arguments(call)))


async def report(text: str) -> None:
    """Runs a turn. One that fails is lost, and the others go on."""
    try:
        await turn(text)
    except Exception as error:
        print(f"failed: {error!r}", file=sys.stderr, flush=True)
    else:
        print("done", flush=True)


async def main() -> None:
    print("ready", flush=True)
    async with asyncio.TaskGroup() as turns:
        while line := await asyncio.to_thread(sys.stdin.readline):
            turns.create_task(report(line.rstrip("\n")))


if __name__ == "__main__":
    asyncio.run(main())
