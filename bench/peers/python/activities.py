"""The activities of the peer in Python: a call of the LLM, and the tool.

They follow Temporal's AI cookbook, "Basic agentic loop with OpenAI and tool calling" (Python). They are async functions
around an async client, as in the cookbook, so the worker needs no pool of threads.
"""

from typing import Any

from temporalio import activity

import model


@activity.defn
async def llm(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return await model.complete(messages)


@activity.defn
async def calculate(arguments: dict[str, Any]) -> str:
    return model.calculate(arguments["expression"])
