"""The shared transcripts: the same frames give the same state as in every other client."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
import transcripts
from cuts import cut

from everturn import Frame, Reducer, State, UserMessage, answer_of_turn, reduce, timeline
from everturn.core.stream import frame_of
from everturn.state.said import Said
from everturn.wire.sse import SseParser
from everturn.wire.step import Cut, Ended, Reconnect, Refused, Wait, next_step

CUTS = 500
LIMIT = 1024 * 1024


def state_of(connections: list[bytes], rng: random.Random) -> State:
    """The state after connections whose bytes arrive in random pieces."""
    reducer = Reducer()
    for stream in connections:
        parser = SseParser(LIMIT)
        at = 0
        while at < len(stream):
            size = rng.choice((1, 7, 100, 5000, len(stream)))
            for message in parser.feed(stream[at : at + size]):
                if frame := frame_of(message):
                    reducer.apply(frame)
            at += size
    return reducer.state


@pytest.mark.parametrize("name", transcripts.conversations())
def test_state_and_timeline(name: str) -> None:
    transcript = transcripts.conversation(name)
    frames = [transcripts.frame_of(frame) for frame in transcript["frames"] if "cut" not in frame]
    state = reduce(frames)
    assert transcripts.as_written(state) == transcript["state"]
    messages = [item.id for item in state.items if isinstance(item, UserMessage)]
    assert {id: answer_of_turn(state.items, id) for id in messages} == transcript["answers"]
    if "timeline" in transcript:
        assert timeline(state.items) == transcript["timeline"]


def test_what_is_said_has_no_reasoning_and_nothing_twice() -> None:
    reducer = Reducer()
    said = Said(reducer.state)
    printed = ""
    for frame in transcripts.conversation("reasoning")["frames"]:
        reducer.apply(transcripts.frame_of(frame))
        printed += said.more(reducer.state)
    assert printed == "I look it up.\n\nOnce more.\n\nThe sky is up."


@pytest.mark.parametrize("name", transcripts.conversations())
def test_random_cuts_change_nothing(name: str, rng: random.Random) -> None:
    transcript = transcripts.conversation(name)
    for number in range(CUTS):
        connections = cut(transcript["frames"], rng)
        state = transcripts.as_written(state_of(connections, rng))
        assert state == transcript["state"], f"cut {number}"


@pytest.mark.parametrize("name", transcripts.conversations())
def test_history_that_is_added_later_gives_the_same_items(name: str, rng: random.Random) -> None:
    """A reader that begins in the middle, and reads what came before, knows the same."""
    frames = [frame for frame in transcripts.conversation(name)["frames"] if "cut" not in frame]
    if any(frame["event"] == "reset" for frame in frames):
        return  # the log is another one than the events that came
    whole = reduce(transcripts.frame_of(frame) for frame in frames)
    log = {_number(frame): frame for frame in frames if _number(frame) > 0}
    events = list(log.values())
    for _ in range(20):
        middle = rng.randint(0, len(events))
        reducer = Reducer(str(_number(events[middle - 1])) if middle else "0")
        for frame in events[middle:]:
            reducer.apply(transcripts.frame_of(frame))
        half = rng.randint(0, middle)
        reducer.prepend([frame["data"] for frame in events[half:middle]])
        reducer.prepend([frame["data"] for frame in events[:middle]])
        assert reducer.state.items == whole.items
        assert reducer.state.status == whole.status


@pytest.mark.parametrize("case", transcripts.cases("sse"), ids=lambda case: case["about"])
def test_server_sent_events(case: Any, rng: random.Random) -> None:
    chunks = [base64.b64decode(chunk) for chunk in case["chunks"]]
    assert _messages(chunks) == case["messages"]
    for _ in range(50):
        whole, pieces = b"".join(chunks), []
        while whole:
            size = rng.randint(1, 6)
            pieces.append(whole[:size])
            whole = whole[size:]
        assert _messages(pieces) == case["messages"]


@pytest.mark.parametrize("case", transcripts.cases("connection"), ids=lambda case: case["about"])
def test_what_follows_a_connection(case: Any) -> None:
    step = next_step(
        _outcome(case["outcome"]), failures=case["failures"], retry_ms=case["retryMs"], random=case["random"]
    )
    assert ({"waitMs": step.ms} if isinstance(step, Wait) else {"stop": step.why}) == case["step"]


def test_a_very_long_row_of_failures_waits_as_long_as_a_long_one() -> None:
    assert next_step(Cut(), failures=100_000, retry_ms=1000, random=0.5) == Wait(22_500)


def test_a_wait_lasts_until_its_model_writes() -> None:
    reducer = Reducer()

    def wait(agent: str, attempt: int) -> Frame:
        known = {"type": "model_waiting", "message_id": "m", "step": 0, "code": "llm_overloaded", "message": "Busy."}
        return Frame({**known, "agent_execution_id": agent, "attempt": attempt, "retry_after_ms": 12_000})

    assert all(reducer.apply(frame) for frame in (wait("run_1", 2), wait("run_2", 2), wait("run_1", 4)))
    assert [one.attempt for one in reducer.state.waits] == [2, 4]
    assert reducer.state.waits[1].retry_after_ms == 12_000
    text = {"type": "text_start", "agent_execution_id": "run_1", "step": 0, "part": "text", "generation": 4}
    assert reducer.apply(Frame(text))
    assert [one.agent_execution_id for one in reducer.state.waits] == ["run_2"]
    assert reducer.apply(Frame({"type": "replay"}))
    assert reducer.state.waits == ()


def test_progress_lasts_until_the_result() -> None:
    reducer = Reducer()

    def report(execution: str, message: str, **more: str) -> Frame:
        known = {"type": "tool_progress", "message_id": "m", "agent_execution_id": "run_1", "tool_name": "copy"}
        return Frame({**known, "execution_id": execution, "progress": 0.5, "message": message, **more})

    frames = [report("exec_1", "one"), report("exec_2", "other"), report("exec_1", "a line", level="info")]
    assert all(reducer.apply(frame) for frame in [*frames, report("exec_1", "two")])
    assert not reducer.apply(report("", "no execution"))
    assert [one.message for one in reducer.state.progress] == ["other", "a line", "two"]
    observe = {"type": "observe", "sequence_number": 1, "message_id": "m", "agent_execution_id": "run_1"}
    assert reducer.apply(Frame({**observe, "execution_id": "exec_1", "tool_name": "copy", "result": 1}))
    assert [one.message for one in reducer.state.progress] == ["other"]
    assert reducer.apply(Frame({"type": "replay"}))
    assert reducer.state.progress == ()


def _messages(chunks: list[bytes]) -> list[dict[str, Any]]:
    parser = SseParser(LIMIT)
    messages = [message for chunk in chunks for message in parser.feed(chunk)]
    optional = ("id", "retry")
    return [
        {"event": message.event, "data": message.data}
        | {name: getattr(message, name) for name in optional if getattr(message, name) is not None}
        for message in messages
    ]


def _outcome(outcome: Any) -> Cut | Refused | Reconnect | Ended:
    if "status" in outcome:
        return Refused(outcome["status"], outcome.get("retryAfter"))
    if "delayMs" in outcome:
        return Reconnect(outcome["delayMs"])
    return Ended(outcome["end"]) if "end" in outcome else Cut()


def _number(frame: Any) -> int:
    data = frame.get("data")
    number = data.get("sequence_number") if isinstance(data, dict) and isinstance(data.get("type"), str) else 0
    return number if isinstance(number, int) else 0
