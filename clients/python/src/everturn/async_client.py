"""The client with ``await``, of which client.py is made: see clients/python/README.md, Changing it.

Each method runs a flow of the core: the rules are there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from types import TracebackType
from typing import Literal

import httpx

from .api import (
    AcceptedMessage,
    AgentExecution,
    AgentList,
    AnsweredApproval,
    Blob,
    Cancelled,
    Event,
    ExecutionStatus,
    InboxApproval,
    ListedConversation,
    OnBusy,
    PendingApproval,
    Resumed,
    SettledToolOutcome,
    StoredResult,
    Timeline,
    UsageDay,
    WaitingCall,
)
from .api import Conversation as ConversationInfo
from .api import Session as SessionInfo
from .core.approvals import approval, denial
from .core.follow_list import follow_list
from .core.one_reader import OneReader
from .core.outbox import FirstMessage, Message, new_message
from .core.session import HISTORY, Answer, Beginning, Session, TurnCore, Update
from .core.setup import Parts
from .core.tools import ClientTools
from .options import Key, Limits
from .runners.asynchronous import AsyncRunner, AsyncSending
from .state.model import Json, JsonObject, State, ToolCall
from .storage import Storage


class AsyncEverturn:
    """A client of Everturn, for one event loop of asyncio.

    ``url`` is where a gateway, or the load balancer before them, listens. ``key`` is a key or a token, or a function
    that gets one for each request. ``transport`` is another one of httpx, for a proxy or a test.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: Key | None = None,
        limits: Limits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._parts = Parts.of(url, key, limits)
        self._runner = AsyncRunner(url, self._parts.http.limits, transport)

    async def __aenter__(self) -> AsyncEverturn:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._runner.close()

    def conversation(
        self,
        id: str | None = None,
        *,
        agent: str | None = None,
        title: str | None = None,
        cursor: str | None = None,
        history: int = HISTORY,
        tools: ClientTools | None = None,
        storage: Storage | None = None,
    ) -> AsyncConversation:
        """Returns a conversation, without asking a gateway. One that does not exist is created by the first message.

        Without an ``id`` it is a new one. ``agent`` and ``title`` are of one that the first message creates. With a
        ``cursor``, only what comes after it is known; without one, the newest events are read first, as many as
        ``history`` (1 to 1000). ``tools`` are functions that run calls of client tools, by the names that the gateway's
        configuration gives them. ``storage`` keeps what must survive the end of the program, for instance
        ``FileStorage(folder)``; the default keeps nothing.
        """
        self._runner.check(tools)
        first, begins = FirstMessage(agent, title), Beginning(cursor, history)
        return AsyncConversation(self._runner, self._parts.session(id, first, begins, tools, storage))

    async def agents(self) -> AgentList:
        """Lists the agents that conversations may have, and the agent of a conversation that names no agent."""
        return await self._runner.run(self._parts.calls.agents())

    def conversations(
        self, *, search: str | None = None, agent: str | None = None, page_size: int | None = None
    ) -> AsyncIterator[ListedConversation]:
        """Yields every conversation, the one that was updated last first. A request reads ``page_size`` of them."""
        return self._runner.stream(self._parts.calls.conversations(search, agent, page_size))

    def approvals(self, *, page_size: int | None = None) -> AsyncIterator[InboxApproval]:
        """Yields the calls of all conversations that wait for an approval, the nearest deadline first.

        The key needs the scope ``approve``. The conversation of a call, ``conversation_id``, takes the answer.
        """
        return self._runner.stream(self._parts.calls.waiting_approvals(page_size))

    def follow_conversations(self) -> AsyncGenerator[list[ListedConversation], None]:
        """Yields the newest conversations, the one that was updated last first, and again after each change.

        One connection serves all of them, and is opened again when it is cut. There are 100 of them at first, and more
        as old ones change.
        """
        return self._runner.stream(follow_list(self._parts.http))

    async def upload(self, content: bytes, media_type: str, *, file_name: str = "") -> Blob:
        """Stores a file, for the ``attachments`` of a message."""
        return await self._runner.run(self._parts.calls.upload(content, media_type, file_name))

    async def download(self, blob_id: str) -> bytes:
        """Reads a file."""
        return await self._runner.run(self._parts.calls.download(blob_id))

    def usage(
        self, *, first: str | None = None, last: str | None = None, page_size: int | None = None
    ) -> AsyncIterator[UsageDay]:
        """Yields what the tenant took of models, by day and model, from the ``first`` to the ``last`` day."""
        return self._runner.stream(self._parts.calls.usage(first, last, page_size))

    async def session(self) -> SessionInfo:
        """Returns who the caller is."""
        return await self._runner.run(self._parts.calls.session())


class AsyncConversation:
    """One conversation. One loop reads it at a time."""

    def __init__(self, runner: AsyncRunner, session: Session) -> None:
        self._runner = runner
        self._session = session
        self._calls = session.calls
        self._reader = OneReader()

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._session.calls.id

    @property
    def state(self) -> State:
        """What was known when the conversation was last read."""
        return self._session.state

    def send(
        self,
        content: str,
        *,
        message_id: str | None = None,
        attachments: Sequence[Blob | str] = (),
        on_busy: OnBusy | None = None,
        model: str | None = None,
    ) -> AsyncTurn:
        """Returns the turn of a message. ``await`` it to send the message; a loop over it sends it, too.

        The same ``message_id`` twice is one message, whichever program sends it: use your own to send a message again
        after a crash. ``on_busy`` says what to do while a turn runs: ``queue`` (the default), ``steer``, ``interrupt``
        or ``reject``. ``attachments`` are files that were uploaded. ``model`` is the model of the whole turn, among the
        ``models`` of the agent: ``provider/model``.
        """
        return self._send(new_message(content, message_id, attachments, on_busy, model))

    async def ask(
        self,
        content: str,
        *,
        message_id: str | None = None,
        attachments: Sequence[Blob | str] = (),
        on_busy: OnBusy | None = None,
        model: str | None = None,
    ) -> Answer:
        """Sends a message as ``send`` does, and waits for the answer. Raises ``TurnError`` when there is none."""
        turn = self.send(content, message_id=message_id, attachments=attachments, on_busy=on_busy, model=model)
        return await turn.answer()

    async def post(
        self,
        content: str,
        *,
        message_id: str | None = None,
        attachments: Sequence[Blob | str] = (),
        on_busy: OnBusy | None = None,
        model: str | None = None,
    ) -> AcceptedMessage:
        """Sends a message as ``send`` does, and does not wait for its turn."""
        message = new_message(content, message_id, attachments, on_busy, model)
        return await self._runner.run(self._session.outbox.send(message))

    def pending(self) -> list[Message]:
        """Returns the messages in the storage that no gateway has confirmed."""
        return self._session.outbox.pending()

    async def restore(self) -> list[AsyncTurn]:
        """Sends again what no gateway has confirmed, and returns the turns."""
        return [await self._send(message) for message in self.pending()]

    def discard(self, message_id: str) -> None:
        """Forgets a pending message. One that a gateway has stored has its turn all the same."""
        self._session.outbox.discard(message_id)

    def follow(self) -> AsyncGenerator[Update, None]:
        """Yields what is known, and then each change, whoever causes it, until the conversation is deleted.

        It comes back by itself when the connection is cut. Whoever is slow skips nothing but is told later.
        """
        return self._reader.take(self._runner.stream(self._session.follow()))

    async def older(self, limit: int = HISTORY) -> bool:
        """Reads the events before the first one that is known into ``state``. False when there are none."""
        return await self._runner.run(self._session.older(limit))

    async def approvals(self) -> list[PendingApproval]:
        """Returns the calls that wait for a person, the oldest first."""
        return await self._runner.run(self._calls.approvals())

    async def approve(
        self,
        call: PendingApproval | ToolCall,
        *,
        tool_input: JsonObject | None = None,
        remember: bool = False,
        answer: JsonObject | None = None,
    ) -> AnsweredApproval:
        """Approves a call: a pending approval, or the call as ``state`` has it.

        With ``tool_input`` the tool runs with this input instead. With ``remember`` this tool does not ask again in
        this conversation. A call with a ``question`` runs on with the ``answer``; for a question with a ``url``, the
        approval says that the person has done there what the question asks for.
        """
        return await self._runner.run(self._calls.answer_approval(*approval(call, tool_input, remember, answer)))

    async def deny(self, call: PendingApproval | ToolCall, *, reason: str | None = None) -> AnsweredApproval:
        """Denies a call; the model reads the ``reason``. A call with a ``question`` runs on, without an answer."""
        return await self._runner.run(self._calls.answer_approval(*denial(call, reason)))

    async def client_tools(self) -> list[WaitingCall]:
        """Returns the calls that a client is to run. Those of the conversation's ``tools`` run by themselves."""
        return await self._runner.run(self._calls.client_tools())

    async def answer_tool(self, execution_id: str, result: Json, *, is_error: bool = False) -> StoredResult:
        """Posts the result of a client tool that is not among the conversation's ``tools``."""
        return await self._runner.run(self._calls.answer_client_tool(execution_id, result, is_error))

    async def settle_outcome(
        self,
        execution_id: str,
        outcome: Literal["happened", "not_happened"],
        *,
        result: Json = None,
        comment: str | None = None,
    ) -> SettledToolOutcome:
        """Settles the outcome of a call whose ``state`` is ``unknown``: whether the tool had its effect.

        Later LLM calls read the outcome, with the ``result`` of a call that happened and the ``comment``. Needs the
        scope ``approve``.
        """
        optional = {"result": result, "comment": comment}
        body = {"outcome": outcome, **{name: value for name, value in optional.items() if value is not None}}
        return await self._runner.run(self._calls.settle_outcome(execution_id, body))

    async def cancel(self, message_id: str | None = None) -> Cancelled:
        """Cancels a message by the gateway's id, or else the turn that runs when the gateway gets the request.

        Name the message where the user may ask twice: a late request without an id may end the next turn.
        """
        return await self._runner.run(self._calls.cancel(message_id))

    async def resume(self) -> Resumed:
        """Goes on with a turn whose workflow is gone, at once. The gateways do it, too, after a while."""
        return await self._runner.run(self._calls.resume())

    async def retry(self, message_id: str | None = None) -> AcceptedMessage:
        """Runs the newest turn again from its last checkpoint, after it has failed.

        ``message_id`` is that of the failed turn's events: another turn is then not retried. The answer has the message
        id of the retry.
        """
        return await self._runner.run(self._calls.retry(message_id))

    async def create(self) -> ConversationInfo:
        """Creates the conversation, or finds it. The first message does it, too."""
        return await self._runner.run(self._session.outbox.create())

    async def show(self) -> ConversationInfo:
        """Returns what the list of conversations has of it."""
        return await self._runner.run(self._calls.show())

    async def rename(self, title: str) -> ConversationInfo:
        """Gives it another title."""
        return await self._runner.run(self._calls.rename(title))

    async def choose_model(self, model: str) -> ConversationInfo:
        """Chooses the model of new messages: ``provider/model``, or an empty text for the agent's own model."""
        return await self._runner.run(self._calls.choose_model(model))

    async def delete(self) -> None:
        """Ends its turn, and removes it. Nothing can bring it back."""
        return await self._runner.run(self._calls.delete())

    async def status(self) -> ExecutionStatus:
        """Returns whether a turn runs."""
        return await self._runner.run(self._calls.status())

    def events(self, from_sequence: int = 0, *, page_size: int | None = None) -> AsyncIterator[Event]:
        """Yields every event from a number on, up to the last one that there is now."""
        return self._runner.stream(self._calls.events(from_sequence, page_size))

    def timeline(self, *, page_size: int | None = None) -> AsyncIterator[Timeline]:
        """Yields the pages of the timeline backwards: the newest page first, each page in order."""
        return self._runner.stream(self._calls.timeline(page_size))

    def executions(self, *, page_size: int | None = None) -> AsyncIterator[AgentExecution]:
        """Yields the agent executions: the turns and their sub-agents, in the order in which they began."""
        return self._runner.stream(self._calls.executions(page_size))

    async def tool_result(self, execution_id: str) -> str:
        """Reads the whole result of a tool: its JSON, or its text if the result is a text."""
        return await self._runner.run(self._calls.tool_result(execution_id))

    def _send(self, message: Message) -> AsyncTurn:
        return AsyncTurn(self._runner, self._reader, TurnCore(self._session, message))


class AsyncTurn(AsyncSending):
    """A message and its turn. ``await`` sends it, once. A loop over it yields each change until the end of the turn."""

    @property
    def message(self) -> Message:
        """The message, with this program's id of it."""
        return self._core.message

    @property
    def message_id(self) -> str | None:
        """The gateway's id of the message, as events name it."""
        return self._core.accepted["message_id"] if self._core.accepted else None

    def __aiter__(self) -> AsyncGenerator[Update, None]:
        return self._reader.take(self._runner.stream(self._core.follow()))

    async def answer(self) -> Answer:
        """Waits for the end of the turn, and returns its answer. Raises ``TurnError`` when there is none."""
        async for _ in self:
            pass
        return self._core.answer()
