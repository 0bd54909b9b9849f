"""The list of conversations, as it changes."""

from __future__ import annotations

from ..api import ListedConversation
from ..state.conversations import ConversationList
from .effects import Emit, Stream
from .http import Http, path
from .stream import Frames


def follow_list(http: Http) -> Stream[list[ListedConversation]]:
    """The list after each change, over cuts and reconnections, until the gateway says not to come back."""
    frames = Frames(http, path("agent", "conversation-list", "stream"))
    known = ConversationList()
    is_open = True
    while is_open:
        connected = yield from frames.connect()
        while connected:
            batch = yield from frames.read()
            if batch is None:
                break
            if any([known.apply(frame.data) for frame in batch]):
                yield Emit(known.conversations)
        is_open = yield from frames.pause()
