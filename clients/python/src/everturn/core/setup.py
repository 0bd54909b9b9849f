"""Puts the parts of a client together: the same parts for both clients."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from ..options import Key, Limits
from ..storage import Storage
from .calls import Calls, ConversationCalls
from .http import Http
from .outbox import FirstMessage, Outbox
from .session import Beginning, Session
from .tools import ClientTools, ToolRunner


@dataclass(frozen=True, slots=True)
class Parts:
    """What a client is made of, beside its runner."""

    http: Http
    calls: Calls

    @classmethod
    def of(cls, url: str, key: Key | None, limits: Limits | None) -> Parts:
        """Makes the parts. What is not given is the default."""
        http = Http(url, key, limits or Limits())
        return cls(http, Calls(http))

    def session(
        self,
        conversation_id: str | None,
        first: FirstMessage,
        begins: Beginning,
        tools: ClientTools | None,
        storage: Storage | None,
    ) -> Session:
        """Makes what follows a conversation; one without an id is a new one. Without a storage nothing is kept."""
        kept: Storage = {} if storage is None else storage
        calls = ConversationCalls(self.http, conversation_id or str(uuid4()))
        outbox = Outbox(calls, kept, self.http.limits.outbox, first)
        return Session(calls, ToolRunner(calls, tools or {}, kept), outbox, begins)
