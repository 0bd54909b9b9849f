"""Tests of a program that uses the client: a gateway in memory, whose turns a test writes.

It needs no server, no model and no network. A turn is what the test's function returns for a message: calls of tools,
and then an answer. Client tools run in the program, and approvals wait for it, as they do with a real gateway.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

import httpx

from .state.model import Json, JsonObject

_CREATED_AT = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call of a turn."""

    tool_name: str
    tool_input: JsonObject = field(default_factory=dict)
    result: Json = None
    """What the tool gives back. One that the program runs (``by="client"``) gives its own."""
    is_error: bool = False
    by: Literal["worker", "client"] = "worker"
    """Who runs the tool: a worker of Everturn, or this program as one of the conversation's ``tools``."""
    needs_approval: bool = False
    """The call waits until the program has approved or denied it."""
    question: JsonObject | None = None
    """What the running tool asks: ``message``, and ``schema`` or ``url``. The call waits until the program has answered
    or declined."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of a turn without an answer."""

    code: str
    message: str = "The turn failed."


Steps: TypeAlias = str | Sequence[ToolUse | Failure | str]
"""What a turn does, in its order. The last text is the answer."""


@dataclass(slots=True)
class _Waiting:
    use: ToolUse
    execution_id: str
    for_whom: Literal["person", "client"]
    input_hash: str = ""
    question: JsonObject | None = None
    decision: JsonObject | None = None
    result: tuple[Json, bool] | None = None


class ScriptedGateway(httpx.MockTransport):
    """A transport for :class:`everturn.Everturn` and :class:`everturn.AsyncEverturn` that answers as a gateway does.

    ``script`` gets the text of a message, and returns what its turn does. ``messages`` has the texts that came, and
    ``results`` what came of each tool call, by the tool's name and in order.
    """

    def __init__(self, script: Callable[[str], Steps]) -> None:
        super().__init__(self._answer)
        self.messages: list[str] = []
        self.results: list[tuple[str, Json]] = []
        self._script = script
        self._conversations: dict[str, _Conversation] = {}

    def _answer(self, request: httpx.Request) -> httpx.Response:
        parts = [unquote(part) for part in request.url.raw_path.decode().partition("?")[0].split("/")][4:]
        if len(parts) < 3 or parts[0] != "conversations":
            return _problem(404, "not_found")
        conversation = self._conversations.setdefault(parts[1], _Conversation(parts[1]))
        body: Any = json.loads(request.content) if request.content else {}
        answer = self._route(conversation, request, parts[2:], body)
        self.results.extend(conversation.go_on())
        return answer

    def _route(
        self, conversation: _Conversation, request: httpx.Request, parts: list[str], body: Any
    ) -> httpx.Response:
        match request.method, *parts:
            case "POST", "messages":
                return self._message(conversation, body)
            case "GET", "events":
                return httpx.Response(200, json={"events": [], "has_more": False})
            case "GET", "events", "stream":
                return conversation.stream(int(request.url.params["cursor"]))
            case "GET", "approvals" | "client-tools":
                return conversation.waiting_calls(parts[0])
            case "POST", "approvals", execution_id:
                return conversation.decide(execution_id, body)
            case "POST", "client-tools", _, "claim":
                return httpx.Response(200, json={"is_repeated": False})
            case "POST", "client-tools", execution_id:
                return conversation.take_result(execution_id, body)
        return _problem(404, "not_found")

    def _message(self, conversation: _Conversation, body: Any) -> httpx.Response:
        known = conversation.message_ids.get(body["message_id"])
        if known is None:
            known = f"msg_{len(conversation.message_ids) + 1}"
            conversation.message_ids[body["message_id"]] = known
            self.messages.append(body["content"])
            conversation.queue(known, body["content"], self._script(body["content"]))
        accepted = {"conversation_id": conversation.id, "message_id": known, "status": "queued"}
        return httpx.Response(202, json=accepted)


class _Conversation:
    """The log of one conversation, and the turns that have not ended."""

    def __init__(self, conversation_id: str) -> None:
        self.id = conversation_id
        self.message_ids: dict[str, str] = {}
        self._events: list[JsonObject] = []
        self._turns: list[Iterator[tuple[str, Json] | None]] = []
        self._waiting: _Waiting | None = None
        self._calls = 0

    def queue(self, message_id: str, content: str, steps: Steps) -> None:
        """Adds a turn behind those that have not ended."""
        self._turns.append(self._turn(message_id, content, [steps] if isinstance(steps, str) else steps))

    def go_on(self) -> Iterator[tuple[str, Json]]:
        """Goes on until a call waits, and yields the results of tools."""
        while self._turns:
            for step in self._turns[0]:
                if step is None:
                    return
                yield step
            self._turns.pop(0)

    def stream(self, cursor: int) -> httpx.Response:
        """The events after the cursor. Then the connection ends, and the client comes back."""
        frames = [_frame({"type": "replay", "last_sequence": len(self._events)})]
        frames += [_frame(event, event["sequence_number"]) for event in self._events[cursor:]]
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content="retry: 1\n\n" + "".join(frames))

    def waiting_calls(self, kind: str) -> httpx.Response:
        """The calls that wait for a person, or for a client."""
        waiting = self._waiting
        wanted = "person" if kind == "approvals" else "client"
        calls = []
        if waiting is not None and waiting.for_whom == wanted:
            names = {"tool_name": waiting.use.tool_name, "tool_input": waiting.use.tool_input}
            asked = {} if waiting.question is None else {"question": waiting.question}
            calls.append({"execution_id": waiting.execution_id, **names, "input_hash": waiting.input_hash, **asked})
        return httpx.Response(200, json={kind.replace("-", "_"): calls})

    def decide(self, execution_id: str, body: Any) -> httpx.Response:
        """Takes the answer to an approval."""
        waiting = self._waiting
        if waiting is None or waiting.execution_id != execution_id or waiting.decision is not None:
            return _problem(409, "approval_answered")
        if body["input_hash"] != waiting.input_hash:
            return _problem(409, "approval_mismatch")
        waiting.decision = body
        return httpx.Response(200, json={"execution_id": execution_id, "tool_name": waiting.use.tool_name})

    def take_result(self, execution_id: str, body: Any) -> httpx.Response:
        """Takes the result of a client tool."""
        waiting = self._waiting
        if waiting is None or waiting.execution_id != execution_id or waiting.result is not None:
            return _problem(409, "client_tool_answered")
        waiting.result = body["result"], body.get("is_error", False)
        return httpx.Response(202, json={"execution_id": execution_id, "status": "stored"})

    def _turn(
        self, message_id: str, content: str, steps: Sequence[ToolUse | Failure | str]
    ) -> Iterator[tuple[str, Json] | None]:
        """One turn: yields the result of each tool, and ``None`` for as long as a call waits."""
        self._event(message_id, "user_message", content=content)
        for at, step in enumerate(steps):
            if isinstance(step, ToolUse):
                yield from self._tool(message_id, step)
            elif isinstance(step, Failure):
                return self._event(message_id, "error", code=step.code, message=step.message)
            elif at + 1 < len(steps):
                self._event(message_id, "thought", thought=step, reasoning="")
            else:
                own = {"message_id": f"{message_id}_answer"}
                self._event(message_id, "assistant_message", content=step, finish="stop", **own)
        self._event(message_id, "complete", finish="stop", steps=1)

    def _tool(self, message_id: str, use: ToolUse) -> Iterator[tuple[str, Json] | None]:
        self._calls += 1
        execution_id = f"exec_{self._calls}"
        call: JsonObject = {"execution_id": execution_id, "call_id": f"call_{self._calls}", "tool_name": use.tool_name}
        self._event(message_id, "act", **call, tool_input=use.tool_input)
        result, is_error = use.result, use.is_error
        decision: JsonObject = {"decision": "approve"}
        if use.needs_approval:
            decision = yield from self._asked(message_id, call, _Waiting(use, execution_id, "person", "hash"))
        is_approved = decision["decision"] == "approve"
        if is_approved and use.question is not None:
            question = _Waiting(use, execution_id, "person", "hash of the question", use.question)
            yield from self._asked(message_id, call, question)
        if not is_approved:
            result, is_error = {"error": f"a person denied this call: {decision.get('reason')}"}, True
        elif use.by == "client":
            tool_input = decision.get("tool_input", use.tool_input)
            self._event(message_id, "client_tool_requested", **call, tool_input=tool_input)
            waiting = self._waiting = _Waiting(use, execution_id, "client")
            while waiting.result is None:
                yield None
            result, is_error = waiting.result
        self._waiting = None
        self._event(message_id, "observe", **call, result=result, is_error=is_error, duration_ms=0)
        yield use.tool_name, result

    def _asked(self, message_id: str, call: JsonObject, asked: _Waiting) -> Generator[None, None, JsonObject]:
        """Waits for a person, and returns the decision."""
        question = {} if asked.question is None else {"question": asked.question}
        request = {"tool_input": asked.use.tool_input, "input_hash": asked.input_hash, **question}
        self._event(message_id, "approval_requested", **call, **request)
        self._waiting = asked
        while asked.decision is None:
            yield None
        decision = asked.decision
        refused = "denied" if asked.question is None else "declined"
        words: JsonObject = {"decision": "approved" if decision["decision"] == "approve" else refused}
        if "tool_input" in decision:
            words |= {"edited": True, "tool_input": decision["tool_input"]}
        if "answer" in decision:
            words["answer"] = decision["answer"]
        self._event(message_id, "approval_resolved", **call, **words)
        return decision

    def _event(self, turn: str, kind: str, **data: Any) -> None:
        place = {"sequence_number": len(self._events) + 1, "created_at": _CREATED_AT}
        self._events.append({"type": kind, "message_id": turn, **place, **data})


def _frame(data: JsonObject, number: int | None = None) -> str:
    place = "" if number is None else f"id: {number}\n"
    return f"{place}data: {json.dumps(data)}\n\n"


def _problem(status: int, code: str) -> httpx.Response:
    sentence = f"The scripted gateway answers {code}."
    fields = {"type": f"/docs/errors/{code}", "title": code, "detail": sentence, "code": code, "request_id": "test"}
    return httpx.Response(status, json={**fields, "status": status})
