"""Calls the model and runs the tool, without Temporal. The peer in Python and the plain script both use it.

It follows the README of openai-python (streaming responses, async usage). The client's own retries are off, as
Temporal's AI cookbook says, because Temporal retries the activity.
"""

import json
import operator
import os
import re
from typing import Any

from openai import AsyncOpenAI

# One client for the whole process: it keeps connections open from one call to the next.
client = AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0, timeout=60)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "calculate",
            "description": "Calculates with two whole numbers, as in 21 * 2.",
            "parameters": {
                "type": "object",
                "properties": {"expression": {"type": "string"}},
                "required": ["expression"],
            },
        },
    }
]

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


async def complete(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Calls the model and collects its stream into the assistant's message: text and tool calls."""
    stream = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS, stream=True)
    text: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    async for chunk in stream:
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta
        if delta.content:
            text.append(delta.content)
        for piece in delta.tool_calls or []:
            empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            call = calls.setdefault(piece.index, empty)
            call["id"] = piece.id or call["id"]
            call["function"]["name"] += piece.function.name or ""
            call["function"]["arguments"] += piece.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


def arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a tool call, which the model sends as JSON in a string."""
    return json.loads(call["function"]["arguments"])


def tool_message(call: dict[str, Any], result: str) -> dict[str, Any]:
    """Returns the message that tells the model the result of a tool call."""
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def calculate(expression: str) -> str:
    """Calculates with two whole numbers. The model reads what is wrong with anything else."""
    found = re.fullmatch(r"\s*(-?\d+)\s*([-+*])\s*(-?\d+)\s*", expression)
    if not found:
        return f"cannot calculate {expression!r}"
    left, sign, right = found.groups()
    return str(OPERATORS[sign](int(left), int(right)))
