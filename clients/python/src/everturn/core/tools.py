"""Client tools: calls that the turn waits for run here, and their results are posted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias
from uuid import uuid4

from ..errors import ApiError, EverturnError
from ..state.model import Item, Json, ToolCall
from ..storage import Storage
from ..wire.step import is_permanent
from .calls import ConversationCalls
from .effects import Call, Flow, Raised, Spawn

logger = logging.getLogger("everturn")


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that this program runs."""

    run: Callable[..., Any]
    """Called with the fields of the input by name. What it returns is the result, as JSON; what it raises is an error
    that the model reads."""
    may_repeat: bool = False
    """True for a tool that does no harm when it runs twice, as one that only reads. Another one is not run again when
    it was cut off by the end of the program: the model is told that its outcome is unknown."""


ClientTools: TypeAlias = Mapping[str, Callable[..., Any] | ClientTool]
"""The tools of a program, by the names that the gateway's configuration gives them."""


@dataclass(frozen=True, slots=True)
class _Result:
    result: Json
    is_error: bool


_OVER = frozenset({"client_tool_answered", "client_tool_expired", "execution_not_found", "conversation_not_found"})
"""Codes that say that nobody waits for the result any more."""
_UNKNOWN = _Result(
    {"error": "The client stopped while it ran this call. Whether it took effect is unknown."}, is_error=True
)


_RENEW_SECONDS = 10.0
"""Between two claims of a call that runs. A claim that is not made again holds for 30 s."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A call that another client runs."""

    until: float
    """When it is claimed again, by the clock that only goes forward."""
    tool_name: str
    tool_input: Json


class ToolRunner:
    """Runs the client tools of one conversation, each call once, also when several devices follow the conversation."""

    def __init__(self, calls: ConversationCalls, tools: ClientTools, storage: Storage) -> None:
        self._calls = calls
        self._storage = storage
        self._tools = {name: tool if isinstance(tool, ClientTool) else ClientTool(tool) for name, tool in tools.items()}
        self._begun: set[str] = set()
        self._held: dict[str, _Held] = {}

    def find(self) -> Flow[None]:
        """Begins the calls that wait, also those before the first event that is known."""
        if not self._tools:
            return
        waiting = yield from self._calls.client_tools()
        self._forget_all_but({call["execution_id"] for call in waiting})
        for call in waiting:
            yield from self._begin(call["execution_id"], call["tool_name"], call["tool_input"])

    def consider(self, items: Iterable[Item]) -> Flow[None]:
        """Begins those of the calls that wait, and those that another client runs no more."""
        if not self._tools:
            return
        free = {id: held for id, held in self._held.items() if held.until <= monotonic()}
        for execution_id, held in free.items():
            del self._held[execution_id]
            yield from self._begin(execution_id, held.tool_name, held.tool_input)
        for item in items:
            if isinstance(item, ToolCall) and item.client_tool and item.state == "running" and item.execution_id:
                yield from self._begin(item.execution_id, item.tool_name, item.tool_input)

    def _forget_all_but(self, waiting: set[str]) -> None:
        """Removes what is stored of calls that nobody waits for any more."""
        prefix = self._key("")
        stored = [key for key in self._storage if key.startswith(prefix)]
        for key in stored:
            if key.removeprefix(prefix) not in waiting:
                self._storage.pop(key, None)

    def _key(self, execution_id: str) -> str:
        return f"everturn-tool/{self._calls.id}/{execution_id}"

    def _begin(self, execution_id: str, tool_name: str, tool_input: Json) -> Flow[None]:
        tool = self._tools.get(tool_name)
        if tool is None or execution_id in self._begun or execution_id in self._held:
            return
        self._begun.add(execution_id)
        yield Spawn(self._run_once(tool, execution_id, tool_name, tool_input))

    def _run_once(self, tool: ClientTool, execution_id: str, tool_name: str, tool_input: Json) -> Flow[None]:
        key = self._key(execution_id)
        is_over = False
        try:
            result = yield from self._result(execution_id, tool, tool_input)
            yield from self._post(execution_id, result)
            is_over = True
        except EverturnError as error:
            if error.code == "client_tool_claimed" and isinstance(error, ApiError):
                self._held[execution_id] = _Held(monotonic() + max(error.retry_after, 1.0), tool_name, tool_input)
                return
            is_over = isinstance(error, ApiError) and is_permanent(error.status)
            if not (isinstance(error, ApiError) and error.code in _OVER):
                logger.warning("The result of the client tool call %s was not posted: %s", execution_id, error)
        finally:
            if is_over:
                self._storage.pop(key, None)
            else:
                self._begun.discard(execution_id)  # the next update begins it again, with the result that is stored

    def _result(self, execution_id: str, tool: ClientTool, tool_input: Json) -> Flow[_Result]:
        """Runs the call, unless it ran before, or was cut off and may not run twice."""
        key = self._key(execution_id)
        before = self._stored(key)
        if "is_error" in before:
            return _Result(before.get("result"), bool(before["is_error"]))
        # Who had begun it claims it again after a restart, and need not wait until its own claim has ended.
        begun_by = before.get("claimant")
        claimant = str(begun_by or f"t-{uuid4().hex}")
        claimed = yield from self._calls.claim_client_tool(execution_id, claimant)
        if (claimed["is_repeated"] or begun_by) and not tool.may_repeat:
            return _UNKNOWN
        self._storage[key] = json.dumps({"claimant": claimant})
        result = yield from _run(tool, tool_input, lambda: self._keep_claim(execution_id, claimant))
        self._storage[key] = json.dumps({"result": result.result, "is_error": result.is_error})
        return result

    def _keep_claim(self, execution_id: str, claimant: str) -> Flow[None]:
        """Claims a call that runs once more. When that fails, its result decides."""
        try:
            yield from self._calls.claim_client_tool(execution_id, claimant)
        except EverturnError as error:
            logger.debug("The claim of %s was not kept: %s", execution_id, error)

    def _stored(self, key: str) -> dict[str, Any]:
        try:
            before = json.loads(self._storage.get(key, "{}"))
        except ValueError:
            return {}
        return before if isinstance(before, dict) else {}

    def _post(self, execution_id: str, result: _Result) -> Flow[None]:
        try:
            yield from self._calls.answer_client_tool(execution_id, result.result, result.is_error)
        except ApiError as error:
            if error.code == "result_too_large":
                yield from self._calls.answer_client_tool(execution_id, {"error": error.message}, True)
            elif error.status != 409:  # else somebody else was first, or nobody waits any more
                raise


def _run(tool: ClientTool, tool_input: Json, keep_claim: Callable[[], Flow[None]]) -> Flow[_Result]:
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    result = yield Call(tool.run, arguments, keep_claim, _RENEW_SECONDS)
    if isinstance(result, Raised):
        return _Result({"error": str(result.error) or type(result.error).__name__}, is_error=True)
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _Result({"error": f"The tool's result is no JSON: {error}"}, is_error=True)
    return _Result(result, is_error=False)
