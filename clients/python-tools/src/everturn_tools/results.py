"""Results on their way to Everturn: small ones through the engine, large ones to the gateway."""

import asyncio
import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from .call import Call
from .errors import OutcomeUnknown, ToolError

LARGE_BYTES = 100_000
"""A larger result is sent to the gateway, because the engine has little room for results."""
MAX_BYTES = 1024 * 1024
ATTEMPTS = 5
TIMEOUT_SECONDS = 30


async def delivered(call: Call, result: Any) -> Any:
    """Returns what the activity gives back: the result, or nothing after the gateway has stored the result.

    Raises ToolError for a result that is no JSON, and for a result past the limit.
    """
    if isinstance(result, bytes):
        return result
    gateway = os.environ.get("EVERTURN_URL")
    try:
        text = json.dumps(result)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{call.tool_name} gave back a result that is no JSON: {error}.") from error
    if gateway is None or len(text) < LARGE_BYTES:
        return result
    if len(text) > MAX_BYTES:
        raise ToolError(f"The result has {len(text)} bytes; the limit is {MAX_BYTES}. Ask for a smaller part.")
    await _store(gateway, call, text)
    return None


async def _store(gateway: str, call: Call, text: str) -> None:
    """Sends a result. The gateway takes the same result twice, so a request without an answer is repeated."""
    path = f"/api/v1/agent/conversations/{quote(call.conversation_id, '')}/remote-tools/{quote(call.execution_id, '')}"
    body = f'{{"run_id": {json.dumps(call.run_id)}, "result": {text}}}'.encode()
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("EVERTURN_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{gateway.rstrip('/')}{path}", body, headers)
    for attempt in range(1, ATTEMPTS + 1):
        failure = await asyncio.to_thread(_send, request)
        if failure is None:
            return
        reason, may_pass = failure
        if not may_pass or attempt == ATTEMPTS:
            raise OutcomeUnknown(f"{call.tool_name} has run, but its result could not be stored: {reason}.")
        await asyncio.sleep(0.2 * 2**attempt)


def _send(request: urllib.request.Request) -> tuple[str, bool] | None:
    """Sends a request. Returns why the request failed, and whether another attempt may succeed."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:
            return f"the gateway answered {error.code}", error.code == 429 or error.code >= 500
    except OSError as error:
        return f"the gateway cannot be reached ({error})", True
