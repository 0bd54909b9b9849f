"""The endpoints: one flow for each, with the names and types of docs/openapi.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..api import (
    AcceptedMessage,
    AgentExecution,
    AgentList,
    AnsweredApproval,
    Blob,
    Cancelled,
    ClaimedClientTool,
    Conversation,
    Event,
    EventPage,
    ExecutionStatus,
    InboxApproval,
    ListedConversation,
    PendingApproval,
    PendingApprovals,
    Resumed,
    Session,
    SettledToolOutcome,
    StoredResult,
    Timeline,
    UsageDay,
    WaitingCall,
    WaitingClientTools,
)
from .effects import Emit, Flow, Request, Stream
from .http import Http, path

LAST = 4_294_967_295
"""Larger than all sequence numbers: reads backwards from the end."""


class Calls:
    """The endpoints that belong to no conversation."""

    def __init__(self, http: Http) -> None:
        self.http = http

    def agents(self) -> Flow[AgentList]:
        """The agents that conversations may have."""
        answer: AgentList = yield from _get(self.http, path("agent", "agents"))
        return answer

    def conversations(self, search: str | None, agent: str | None, page_size: int | None) -> Stream[ListedConversation]:
        """Every conversation, page by page."""
        before: str | None = None
        while True:
            query = {"limit": page_size, "before": before, "search": search, "agent": agent}
            answer = yield from _get(self.http, path("agent", "conversations"), **query)
            for conversation in answer["conversations"]:
                yield Emit(conversation)
            before = answer["next_before"]
            if before is None:
                return

    def waiting_approvals(self, page_size: int | None) -> Stream[InboxApproval]:
        """The calls of all conversations that wait for an approval, page by page."""
        after: str | None = None
        while True:
            query = {"state": "waiting", "limit": page_size, "after": after}
            answer = yield from _get(self.http, path("agent", "approvals"), **query)
            for call in answer["approvals"]:
                yield Emit(call)
            after = answer["next_after"]
            if after is None:
                return

    def upload(self, content: bytes, media_type: str, file_name: str) -> Flow[Blob]:
        """Stores a file."""
        headers = {"content-type": media_type, "idempotency-key": f"f-{uuid4().hex}"}
        request = Request(
            method="POST",
            path=path("agent", "blobs"),
            query={"file_name": file_name or None},
            content=content,
            headers=headers,
            is_repeatable=True,
        )
        answer: Blob = yield from self.http.json(request)
        return answer

    def download(self, blob_id: str) -> Flow[bytes]:
        """Reads a file."""
        answer = yield from self.http.send(
            Request(method="GET", path=path("agent", "blobs", blob_id), is_repeatable=True)
        )
        return answer.body

    def usage(self, first: str | None, last: str | None, page_size: int | None) -> Stream[UsageDay]:
        """Every sum, page by page."""
        after: str | None = None
        while True:
            query = {"from": first, "to": last, "limit": page_size, "after": after}
            answer = yield from _get(self.http, path("usage"), **query)
            for day in answer["usage"]:
                yield Emit(day)
            after = answer["next_after"]
            if after is None:
                return

    def session(self) -> Flow[Session]:
        """Who the caller is."""
        answer: Session = yield from _get(self.http, path("auth", "session"))
        return answer


class ConversationCalls:
    """The endpoints of one conversation."""

    def __init__(self, http: Http, conversation_id: str) -> None:
        self.http = http
        self.id = conversation_id

    def path(self, *parts: str) -> str:
        """Returns a path below the conversation."""
        return path("agent", "conversations", self.id, *parts)

    def create(self, agent: str | None, title: str | None) -> Flow[Conversation]:
        """Creates it, or finds it."""
        body = {"id": self.id, **given(agent=agent, title=title)}
        request = Request(method="POST", path=path("agent", "conversations"), json=body, is_repeatable=True)
        answer: Conversation = yield from self.http.json(request)
        return answer

    def show(self) -> Flow[Conversation]:
        """What the list has of it."""
        answer: Conversation = yield from _get(self.http, self.path())
        return answer

    def rename(self, title: str) -> Flow[Conversation]:
        """Gives it another title."""
        request = Request(method="PATCH", path=self.path(), json={"title": title}, is_repeatable=True)
        answer: Conversation = yield from self.http.json(request)
        return answer

    def choose_model(self, model: str) -> Flow[Conversation]:
        """Chooses the model of new messages."""
        request = Request(method="PATCH", path=self.path(), json={"model": model}, is_repeatable=True)
        answer: Conversation = yield from self.http.json(request)
        return answer

    def delete(self) -> Flow[None]:
        """Removes it."""
        yield from self.http.send(Request(method="DELETE", path=self.path()))

    def status(self) -> Flow[ExecutionStatus]:
        """Whether a turn runs."""
        answer: ExecutionStatus = yield from _get(self.http, self.path("execution-status"))
        return answer

    def cancel(self, message_id: str | None) -> Flow[Cancelled]:
        """Cancels the turn that runs, or one message."""
        answer: Cancelled = yield from self._post(self.path("cancel"), given(message_id=message_id))
        return answer

    def resume(self) -> Flow[Resumed]:
        """Goes on with a turn whose workflow is gone."""
        answer: Resumed = yield from self._post(self.path("resume"), None)
        return answer

    def retry(self, message_id: str | None) -> Flow[AcceptedMessage]:
        """Runs the newest turn again, after it has failed."""
        answer: AcceptedMessage = yield from self._post(self.path("retry"), given(message_id=message_id))
        return answer

    def approvals(self) -> Flow[list[PendingApproval]]:
        """The calls that wait for a person."""
        answer: PendingApprovals = yield from _get(self.http, self.path("approvals"))
        return answer["approvals"]

    def answer_approval(self, execution_id: str, body: dict[str, Any]) -> Flow[AnsweredApproval]:
        """Approves or denies a call. It is not repeated, because a second answer is refused."""
        request = Request(method="POST", path=self.path("approvals", execution_id), json=body)
        answer: AnsweredApproval = yield from self.http.json(request)
        return answer

    def client_tools(self) -> Flow[list[WaitingCall]]:
        """The calls that a client is to run."""
        answer: WaitingClientTools = yield from _get(self.http, self.path("client-tools"))
        return answer["client_tools"]

    def claim_client_tool(self, execution_id: str, claimant: str) -> Flow[ClaimedClientTool]:
        """Claims a call, so that no other client runs it."""
        answer: ClaimedClientTool
        answer = yield from self._post(self.path("client-tools", execution_id, "claim"), {"claimant": claimant})
        return answer

    def answer_client_tool(self, execution_id: str, result: Any, is_error: bool) -> Flow[StoredResult]:
        """Posts the result of a call."""
        body = {"result": result, "is_error": is_error}
        answer: StoredResult = yield from self._post(self.path("client-tools", execution_id), body)
        return answer

    def settle_outcome(self, execution_id: str, body: dict[str, Any]) -> Flow[SettledToolOutcome]:
        """Settles the outcome of a call."""
        answer: SettledToolOutcome = yield from self._post(self.path("tool-calls", execution_id, "outcome"), body)
        return answer

    def event_page(self, before: int, limit: int) -> Flow[EventPage]:
        """The last events before a number."""
        answer: EventPage = yield from _get(self.http, self.path("events"), before=before, limit=limit)
        return answer

    def events(self, from_sequence: int, page_size: int | None) -> Stream[Event]:
        """Every event, page by page."""
        while True:
            query = {"from_sequence": from_sequence, "limit": page_size}
            answer: EventPage = yield from _get(self.http, self.path("events"), **query)
            for event in answer["events"]:
                yield Emit(event)
                from_sequence = event["sequence_number"] + 1
            if not answer["has_more"]:
                return

    def timeline(self, page_size: int | None) -> Stream[Timeline]:
        """The pages of the timeline, the newest first."""
        before: int | None = None
        while True:
            query = {"before": before, "limit": page_size}
            timeline: Timeline = yield from _get(self.http, self.path("messages"), **query)
            yield Emit(timeline)
            before = timeline["nextBefore"]
            if before is None:
                return

    def executions(self, page_size: int | None) -> Stream[AgentExecution]:
        """Every agent execution, page by page."""
        after: str | None = None
        while True:
            answer = yield from _get(self.http, self.path("executions"), limit=page_size, after=after)
            for execution in answer["executions"]:
                yield Emit(execution)
            after = answer["next_after"]
            if after is None:
                return

    def tool_result(self, execution_id: str) -> Flow[str]:
        """The whole result of a tool."""
        texts, offset = [], 0
        while True:
            slice_path = self.path("tool-executions", execution_id, "result")
            answer = yield from _get(self.http, slice_path, offset=offset, limit=262_144)
            texts.append(answer["text"])
            if answer["next_offset"] is None:
                return "".join(texts)
            offset = answer["next_offset"]

    def _post(self, where: str, body: Any) -> Flow[Any]:
        """Posts something that does no harm when it is posted twice."""
        return (yield from self.http.json(Request(method="POST", path=where, json=body, is_repeatable=True)))


def attachments_of(files: Sequence[Blob | str]) -> list[dict[str, str]]:
    """Returns what a message names files by."""
    return [{"blob_id": file if isinstance(file, str) else file["blob_id"]} for file in files]


def _get(http: Http, where: str, **query: str | int | None) -> Flow[Any]:
    return (yield from http.json(Request(method="GET", path=where, query=query, is_repeatable=True)))


def given(**fields: Any) -> dict[str, Any]:
    """Returns the fields that are not ``None``."""
    return {name: value for name, value in fields.items() if value is not None}
