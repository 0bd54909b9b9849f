"""Messages on their way to the gateway: each has an id of its own, so sending it twice stores it once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from ..api import AcceptedMessage, Blob, Conversation, OnBusy
from ..errors import ApiError, EverturnError
from ..storage import Storage
from ..wire.step import is_permanent
from .calls import ConversationCalls, attachments_of, given
from .effects import Flow, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of this program."""

    content: str
    message_id: str
    """The program's own. The same one twice in a conversation is one message."""
    attachments: tuple[str, ...] = ()
    """The ``blob_id`` of each file."""
    on_busy: OnBusy | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """What the first message makes a conversation of, when there is none."""

    agent: str | None
    title: str | None


def new_message(
    content: str,
    message_id: str | None,
    attachments: Sequence[Blob | str],
    on_busy: OnBusy | None,
    model: str | None,
) -> Message:
    """Makes a message, with an id that nobody else makes unless one is given."""
    return Message(
        content=content,
        message_id=message_id or f"m-{uuid4().hex}",
        attachments=tuple(file["blob_id"] for file in attachments_of(attachments)),
        on_busy=on_busy,
        model=model,
    )


class Outbox:
    """Sends the messages of one conversation, and stores each until the gateway has answered."""

    def __init__(self, calls: ConversationCalls, storage: Storage, max_messages: int, first: FirstMessage) -> None:
        self._calls = calls
        self._storage = storage
        self._max_messages = max_messages
        self._first = first

    def pending(self) -> list[Message]:
        """Returns the messages that no gateway has confirmed, in the order in which they were stored."""
        keys = [key for key in self._storage if key.startswith(self._key(""))]
        return [message for key in keys if (message := _read(self._storage[key]))]

    def send(self, message: Message) -> Flow[AcceptedMessage]:
        """Sends a message, which creates the conversation when there is none."""
        key = self._key(message.message_id)
        waiting = sum(1 for other in self._storage if other.startswith(self._key("")) and other != key)
        if waiting >= self._max_messages:
            raise EverturnError("outbox_full", f"{waiting} messages wait to be sent: send or discard them first.")
        self._storage[key] = json.dumps(asdict(message))
        try:
            accepted = yield from self._post(message)
        except ApiError as error:
            if is_permanent(error.status):
                self.discard(message.message_id)
            raise
        self.discard(message.message_id)
        return accepted

    def create(self) -> Flow[Conversation]:
        """Creates the conversation, or finds it."""
        return self._calls.create(self._first.agent, self._first.title)

    def discard(self, message_id: str) -> None:
        """Forgets a message. One that the gateway has stored has its turn all the same."""
        self._storage.pop(self._key(message_id), None)

    def _post(self, message: Message) -> Flow[AcceptedMessage]:
        body: dict[str, Any] = {"content": message.content, "message_id": message.message_id}
        if message.attachments:
            body["attachments"] = attachments_of(message.attachments)
        if message.on_busy is not None:
            body["on_busy"] = message.on_busy
        if message.model is not None:
            body["model"] = message.model
        body["create"] = given(agent=self._first.agent, title=self._first.title)
        request = Request(method="POST", path=self._calls.path("messages"), json=body, is_repeatable=True)
        accepted: AcceptedMessage = yield from self._calls.http.json(request)
        return accepted

    def _key(self, message_id: str) -> str:
        return f"everturn-message/{self._calls.id}/{message_id}"


def _read(text: str) -> Message | None:
    """Reads a stored message; ``None`` for what somebody else wrote."""
    try:
        fields = json.loads(text)
        return Message(**{**fields, "attachments": tuple(fields["attachments"])})
    except (ValueError, TypeError, KeyError):
        return None
