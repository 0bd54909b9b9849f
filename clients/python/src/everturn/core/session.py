"""One conversation as this program follows it: its state, its stream, its client tools and its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..api import AcceptedMessage, Event
from ..errors import EverturnError, TurnError
from ..state.model import End, Item, Json, JsonObject, State, UserMessage
from ..state.reducer import Reducer
from ..state.said import Said
from ..state.select import answer_of_turn, end_of_turn, items_of_turn
from .calls import LAST, ConversationCalls
from .effects import Emit, Flow, Stream
from .outbox import Message, Outbox
from .stream import Frames
from .tools import ToolRunner

Connection: TypeAlias = Literal["connecting", "open", "waiting"]
"""How the stream is. ``waiting``: it was lost, and is opened again after a while."""


@dataclass(frozen=True, slots=True)
class Update:
    """What a program shows of a conversation at one moment."""

    state: State
    new_text: str = ""
    """What the turn's own agent has said since the last update, ready to be printed."""
    connection: Connection = "open"
    has_older: bool = False
    """There are events before the first one that is known: see ``older()``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a turn."""

    content: str
    """What the agent answered, whole: a provider may have cut it into parts."""
    end: End
    """How the turn ended: ``usage``, ``cost_usd``, ``finish``, ``steps``."""
    items: tuple[Item, ...]
    """Everything of the turn that is known."""
    output: Json = None
    """The value of the answer, when the agent has an output schema."""


HISTORY = 1000
"""Events of a page of history, by default."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a conversation begins to be known: behind a cursor, else with the newest events."""

    cursor: str | None
    history: int
    """How many of the newest events."""


class Session:
    """Follows one conversation. One reader at a time."""

    def __init__(self, calls: ConversationCalls, tools: ToolRunner, outbox: Outbox, begins: Beginning) -> None:
        self.calls = calls
        self.outbox = outbox
        self._tools = tools
        self._limits = calls.http.limits
        self._history = begins.history
        self._reducer = Reducer(begins.cursor or "0", self._limits.events)
        self._is_loaded = begins.cursor is not None

    @property
    def state(self) -> State:
        """What is known now."""
        return self._reducer.state

    def follow(self) -> Stream[Update]:
        """What is known, and then each change, until the gateway says not to come back."""
        yield from self._load()
        yield Emit(self._update("connecting", ""))
        yield from self._follow(lambda: False)

    def turn(self, turn: TurnCore) -> Stream[Update]:
        """Each change until the end of a message's turn. The message is sent first, unless it was."""
        accepted = yield from turn.send()
        yield from self._load()
        while accepted["status"] == "accepted_before" and not turn.is_taken and self._reducer.first_sequence > 1:
            if not (yield from self.older(HISTORY)):
                break
        if turn.end is None:
            yield from self._follow(lambda: turn.end is not None)
        if turn.end is None:
            raise EverturnError("stream_ended", f"The stream ended before the turn did: {self.state.ended}.")

    def older(self, limit: int) -> Flow[bool]:
        """Reads the events before the first one that is known. False when there are none."""
        page = yield from self.calls.event_page(self._reducer.first_sequence, limit)
        self._reducer.prepend([event_data(event) for event in page["events"]])
        return bool(page["events"])

    def _load(self) -> Flow[None]:
        """Reads the latest events, once."""
        if self._is_loaded:
            return
        page = yield from self.calls.event_page(LAST, self._history)
        events = [event_data(event) for event in page["events"]]
        if events:
            last = events[-1]["sequence_number"]
            self._reducer = Reducer(str(last), self._limits.events)
            self._reducer.prepend(events)
        self._is_loaded = True

    def _follow(self, is_over: Callable[[], bool]) -> Stream[Update]:
        frames = Frames(self.calls.http, self.calls.path("events", "stream"))
        said = Said(self.state)
        yield from self._tools.find()
        is_open = True
        while is_open:
            connected = yield from frames.connect(self.state.cursor)
            caught_up_at = 0
            while connected and not is_over():
                batch = yield from frames.read()
                if batch is None:
                    break
                before = self.state
                for frame in batch:
                    if isinstance(frame.data, dict) and frame.data.get("type") == "replay":
                        caught_up_at = _whole(frame.data.get("last_sequence"))
                    self._reducer.apply(frame)
                if self.state is not before:
                    yield Emit(self._update("open", said.more(self.state)))
                if self._reducer.last_sequence >= caught_up_at:  # else its result may be in what still comes
                    yield from self._tools.consider(self.state.items)
            if is_over():
                return
            yield Emit(self._update("waiting", ""))
            is_open = yield from frames.pause()

    def _update(self, connection: Connection, new_text: str) -> Update:
        return Update(self.state, new_text, connection, self._reducer.first_sequence > 1)


class TurnCore:
    """One message, and the turn that takes it."""

    def __init__(self, session: Session, message: Message) -> None:
        self.message = message
        self.accepted: AcceptedMessage | None = None
        self._session = session

    def send(self) -> Flow[AcceptedMessage]:
        """Sends the message, unless the gateway has it."""
        if self.accepted is None:
            self.accepted = yield from self._session.outbox.send(self.message)
        return self.accepted

    def follow(self) -> Stream[Update]:
        """Each change until the end of the turn."""
        return self._session.turn(self)

    @property
    def is_taken(self) -> bool:
        """True when the events that are known have the message: a turn took it."""
        items = self._session.state.items
        own = self.accepted["message_id"] if self.accepted else None
        return any(isinstance(item, UserMessage) and item.id == own for item in reversed(items))

    @property
    def end(self) -> End | None:
        """The end of the turn, once it has ended. A message that was steered has that of the turn that it joined."""
        return end_of_turn(self._session.state.items, self.accepted["message_id"]) if self.accepted else None

    def answer(self) -> Answer:
        """Returns the answer of the turn, which has ended. Raises ``TurnError`` when there is none."""
        end, accepted, items = self.end, self.accepted, self._session.state.items
        assert end is not None, "the turn has ended"
        assert accepted is not None, "the message was sent"
        if end.outcome != "complete":
            code = end.code or end.outcome
            sentence = end.message or f"The turn was cancelled: {end.reason or 'nobody said why'}."
            raise TurnError(code, sentence, self._session.calls.http.docs(code) if end.code else None)
        content = answer_of_turn(items, accepted["message_id"]) or ""
        return Answer(content, end, tuple(items_of_turn(items, end.turn)), end.output)


def event_data(event: Event) -> JsonObject:
    """Returns the data of the frame that the stream sends for an event: its own fields beside those of its data."""
    own: Any = event["event_data"]
    return {
        "message_id": event["message_id"],
        **(own if isinstance(own, dict) else {}),
        "type": event["event_type"],
        "conversation_id": event["conversation_id"],
        "sequence_number": event["sequence_number"],
        "created_at": event["created_at"],
    }


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
