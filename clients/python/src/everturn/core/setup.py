"""Puts the parts of a client together: the same parts for both clients."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from ..options import Key, Limits
from ..storage import Storage
from .calls import Calls, ConversationCalls
from .http import Http
from .outbox import Outbox
from .session import Session
from .tools import ClientTools, ToolRunner


@dataclass(frozen=True, slots=True)
class Parts:
    """What a client is made of, beside its runner."""

    http: Http
    calls: Calls
    tools: ClientTools
    storage: Storage

    @classmethod
    def of(
        cls, url: str, key: Key | None, tools: ClientTools | None, storage: Storage | None, limits: Limits | None
    ) -> Parts:
        """Makes the parts. What is not given is the default."""
        http = Http(url, key, limits or Limits())
        return cls(http, Calls(http), dict(tools or {}), {} if storage is None else storage)

    def session(self, conversation_id: str | None, agent: str | None, title: str | None, cursor: str | None) -> Session:
        """Makes what follows a conversation; one without an id is a new one."""
        calls = ConversationCalls(self.http, conversation_id or str(uuid4()))
        outbox = Outbox(calls, self.storage, self.http.limits.outbox, agent, title)
        return Session(calls, ToolRunner(calls, self.tools, self.storage), outbox, cursor)
