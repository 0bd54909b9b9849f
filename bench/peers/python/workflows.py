"""The workflow of the peer in Python: one turn of an agent.

It follows Temporal's AI cookbook, "Basic agentic loop with OpenAI and tool calling" (Python). It is in a file of its
own and passes its imports through the sandbox, as the README of Temporal's Python SDK advises: the sandbox loads this
file again for each workflow.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    import model
    from activities import llm

TIMEOUT = timedelta(seconds=60)


@workflow.defn(name="turn")
class Turn:
    @workflow.run
    async def run(self, text: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
        while True:
            reply = await workflow.execute_activity(llm, messages, start_to_close_timeout=TIMEOUT)
            messages.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                return reply["content"]
            messages.extend(await asyncio.gather(*(self.run_tool(call) for call in calls)))

    async def run_tool(self, call: dict[str, Any]) -> dict[str, Any]:
        """Runs the activity that has the name of the tool."""
        result = await workflow.execute_activity(
            call["function"]["name"], model.arguments(call), result_type=str, start_to_close_timeout=TIMEOUT
        )
        return model.tool_message(call, result)
