"""Client tools: calls that the turn waits for run here, and their results are posted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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


_UNKNOWN = _Result(
    {"error": "The client stopped while it ran this call. Whether it took effect is unknown."}, is_error=True
)


class ToolRunner:
    """Runs the client tools of one conversation, each call once."""

    def __init__(self, calls: ConversationCalls, tools: ClientTools, storage: Storage) -> None:
        self._calls = calls
        self._storage = storage
        self._tools = {name: tool if isinstance(tool, ClientTool) else ClientTool(tool) for name, tool in tools.items()}
        self._begun: set[str] = set()

    def find(self) -> Flow[None]:
        """Begins the calls that wait, also those before the first event that is known."""
        if not self._tools:
            return
        waiting = yield from self._calls.client_tools()
        self._forget_all_but({call["execution_id"] for call in waiting})
        for call in waiting:
            yield from self._begin(call["execution_id"], call["tool_name"], call["tool_input"])

    def consider(self, items: Iterable[Item]) -> Flow[None]:
        """Begins those of the calls that wait."""
        if not self._tools:
            return
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
        if tool is None or execution_id in self._begun:
            return
        self._begun.add(execution_id)
        yield Spawn(self._run_once(tool, execution_id, tool_input))

    def _run_once(self, tool: ClientTool, execution_id: str, tool_input: Json) -> Flow[None]:
        key = self._key(execution_id)
        is_over = False
        try:
            result = yield from self._result(key, tool, tool_input)
            yield from self._post(execution_id, result)
            is_over = True
            self._storage.pop(key, None)
        except EverturnError as error:
            is_over = isinstance(error, ApiError) and is_permanent(error.status)
            logger.warning("The result of the client tool call %s was not posted: %s", execution_id, error)
        finally:
            if not is_over:
                self._begun.discard(execution_id)  # the next update begins it again, with the result that is stored

    def _result(self, key: str, tool: ClientTool, tool_input: Json) -> Flow[_Result]:
        """Runs the call, unless it ran before or was cut off."""
        before = self._stored(key)
        if before is not None:
            return before
        if key in self._storage and not tool.may_repeat:
            return _UNKNOWN
        self._storage[key] = "{}"
        result = yield from _run(tool, tool_input)
        self._storage[key] = json.dumps({"result": result.result, "is_error": result.is_error})
        return result

    def _stored(self, key: str) -> _Result | None:
        try:
            before = json.loads(self._storage.get(key, "{}"))
            return _Result(before["result"], before["is_error"])
        except (ValueError, KeyError, TypeError):
            return None

    def _post(self, execution_id: str, result: _Result) -> Flow[None]:
        try:
            yield from self._calls.answer_client_tool(execution_id, result.result, result.is_error)
        except ApiError as error:
            if error.code == "result_too_large":
                yield from self._calls.answer_client_tool(execution_id, {"error": error.message}, True)
            elif error.status != 409:  # else somebody else was first, or nobody waits any more
                raise


def _run(tool: ClientTool, tool_input: Json) -> Flow[_Result]:
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    result = yield Call(tool.run, arguments)
    if isinstance(result, Raised):
        return _Result({"error": str(result.error) or type(result.error).__name__}, is_error=True)
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _Result({"error": f"The tool's result is no JSON: {error}"}, is_error=True)
    return _Result(result, is_error=False)
