"""Frames in, state out: everything that a client knows follows from the frames that it has seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .fields import count, text
from .fold import Fold
from .model import JsonObject, State
from .progress import Reports
from .texts import Texts
from .waits import Waits

_REPLACES_TEXTS = frozenset({"thought", "assistant_message", "complete", "error", "cancelled"})
_ENDS = frozenset({"complete", "error", "cancelled"})


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of the stream of events."""

    data: Any
    """The value of ``data:``. What is no object is ignored."""
    id: str | None = None
    """Of an event: its cursor."""


@dataclass(frozen=True, slots=True)
class _Event:
    id: str
    sequence_number: int
    data: JsonObject


class Reducer:
    """Turns the frames of one conversation into its state.

    ``cursor`` is where to begin when what came before is not known. ``max_events`` is how many events are kept; past
    it, the oldest tenth is forgotten.
    """

    def __init__(self, cursor: str = "0", max_events: int = 50_000) -> None:
        number = cursor.partition("-")[0]
        self._start = (cursor, int(number) if number.isdecimal() else 0)
        self._max_events = max_events
        self._events: list[_Event] = []
        self._fold = Fold()
        self._texts = Texts()
        self._waits = Waits()
        self._progress = Reports()
        self._ended: str | None = None
        self._state: State | None = None

    @property
    def state(self) -> State:
        """The state now. It is made anew only when something has changed."""
        if self._state is None:
            turn = self._fold.turn
            self._state = State(
                cursor=self._events[-1].id if self._events else self._start[0],
                status="idle" if turn is None else "waiting" if self._fold.is_waiting else "running",
                turn=turn,
                ended=self._ended,
                items=tuple(self._fold.items),
                texts=self._texts.shown(),
                waits=self._waits.shown(),
                progress=self._progress.shown(),
            )
        return self._state

    @property
    def first_sequence(self) -> int:
        """The number of the first event that is known, or of the next one when none is."""
        return self._events[0].sequence_number if self._events else self._start[1] + 1

    @property
    def last_sequence(self) -> int:
        """The number of the last event; 0 before the first."""
        return self._events[-1].sequence_number if self._events else self._start[1]

    def apply(self, frame: Frame) -> bool:
        """Takes the next frame. True when the state has changed."""
        if not isinstance(frame.data, dict):
            return False
        has_changed = self._take(frame.id, frame.data)
        if has_changed:
            self._state = None
        return has_changed

    def prepend(self, older: Sequence[JsonObject]) -> None:
        """Adds events from before the first that is known, in their order, each as its frame's data has it."""
        before = self.first_sequence
        events = [event for data in older if (event := _event(None, data)) and event.sequence_number < before]
        if events:
            self._refold([*events, *self._events])

    def _take(self, frame_id: str | None, data: JsonObject) -> bool:
        event = _event(frame_id, data)
        if event:
            return self._take_event(event)
        match data.get("type"):
            case "replay":
                had_ended, self._ended = self._ended is not None, None
                had_waits, had_progress = self._waits.clear(), self._progress.clear()
                return self._texts.clear() or had_ended or had_waits or had_progress
            case "text_start" | "text_delta" | "text_end":
                agent = text(data, "agent_execution_id")
                had_wait = self._waits.drop(agent)
                return self._texts.apply(data, self._fold.parent_of(agent)) or had_wait
            case "model_waiting":
                return self._waits.apply(data)
            case "tool_progress":
                return self._progress.apply(data)
            case "reset":
                return self._reset(count(data, "from_sequence") or 1)
            case "end":
                self._ended = text(data, "reason")
                return True
            case _:
                return False

    def _take_event(self, event: _Event) -> bool:
        if event.sequence_number <= self.last_sequence:
            return False
        self._events.append(event)
        if event.data["type"] == "observe":
            self._progress.drop(text(event.data, "execution_id"))
        if event.data["type"] in _ENDS:
            self._progress.drop_of_agent(text(event.data, "agent_execution_id"))
        if event.data["type"] in _REPLACES_TEXTS:
            self._texts.drop(text(event.data, "agent_execution_id"))
            self._waits.drop(text(event.data, "agent_execution_id"))
        if len(self._events) > self._max_events:
            self._refold(self._events[-(-self._max_events // 10) :])
        else:
            self._fold.apply(event.data, event.sequence_number)
        return True

    def _reset(self, from_sequence: int) -> bool:
        """Forgets the events from this number on: another log has taken their place."""
        self._texts.clear()
        self._waits.clear()
        self._progress.clear()
        before = max(0, from_sequence - 1)
        if before < self._start[1]:
            self._start = (str(before), before)
        self._refold([event for event in self._events if event.sequence_number < from_sequence])
        return True

    def _refold(self, events: list[_Event]) -> None:
        self._events = events
        self._fold = Fold()
        for event in events:
            self._fold.apply(event.data, event.sequence_number)
        self._state = None


def _event(frame_id: str | None, data: JsonObject) -> _Event | None:
    """Returns the event that a frame is; ``None`` when it is none."""
    number = count(data, "sequence_number")
    if not number or not isinstance(data.get("type"), str):
        return None
    return _Event(frame_id or str(number), number, data)


def reduce(frames: Iterable[Frame], cursor: str = "0") -> State:
    """Returns the state after these frames."""
    reducer = Reducer(cursor)
    for frame in frames:
        reducer.apply(frame)
    return reducer.state
