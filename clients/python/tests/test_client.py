"""Both clients against a gateway on a real socket: what they send, and what they make of what comes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Cut, Gateway, Received, event, frame, problem, replay, text

import everturn
from everturn import ApiError, ClientTool, EverturnError, FileStorage, Limits, TurnError
from everturn.core import tools

Connect = Callable[..., Any]
STREAM = "conversations/talk/events/stream"
SAID = event(1, "user_message", content="Hi")
ANSWER = event(2, "assistant_message", message_id="msg_a", content="Hello!", agent_execution_id="run_1", step=0)
END = event(3, "complete", agent_execution_id="run_1", steps=1, finish="stop", cost_usd="0.01")


def cut(_: Received) -> Answer:
    raise Cut


def test_send_and_answer(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, text("text_start", text="Hel"), ANSWER, END]))
    turn = connect(key="secret").conversation("talk").send("Hi", message_id="mine")
    updates = list(turn)
    assert "".join(update.new_text for update in updates) == "Hello!"
    assert updates[-1].state.status == "idle"
    assert turn.message_id == "msg_1"
    answer = turn.answer()
    assert (answer.content, answer.end.cost_usd) == ("Hello!", "0.01")
    (sent,) = gateway.seen("POST", "/messages")
    assert sent.json == {"content": "Hi", "message_id": "mine", "create": {}}
    assert {request.headers["authorization"] for request in gateway.received} == {"Bearer secret"}


def test_agents_are_listed(gateway: Gateway, connect: Connect) -> None:
    agents = {"agents": [{"name": "support", "samples": ["Where is it?"]}], "default_agent": None}
    gateway.on("GET", "agents", problem(503, "store_unavailable"), Answer(body=agents))
    assert connect().agents() == agents


def test_key_may_be_a_function(gateway: Gateway, connect: Connect) -> None:
    keys = iter(["first", "second", "third"])
    conversation = connect(key=lambda: next(keys)).conversation("talk")
    gateway.on("GET", "conversations/talk", problem(503, "store_unavailable"), Answer(body={"id": "talk"}))
    assert conversation.show() == {"id": "talk"}
    assert [request.headers["authorization"] for request in gateway.received] == ["Bearer first", "Bearer second"]


def test_a_cut_in_a_text_doubles_no_word(gateway: Gateway, connect: Connect) -> None:
    first = [replay(), SAID, text("text_start", text="Hel"), text("text_delta", offset=3, text="lo")[:40]]
    second = [replay(1), text("text_start", text="Hello"), text("text_delta", offset=5, text="!"), ANSWER, END]
    gateway.on("GET", STREAM, Answer(body=first), Answer(body=second))
    updates = list(connect().conversation("talk").send("Hi"))
    assert "".join(update.new_text for update in updates) == "Hello!"
    assert "waiting" in [update.connection for update in updates]
    assert [request.query["cursor"] for request in gateway.seen("GET", "/stream")] == ["0", "1-1a"]


def test_a_text_that_begins_anew_is_shown_anew(gateway: Gateway, connect: Connect) -> None:
    frames = [
        replay(),
        SAID,
        text("text_start", text="Good"),
        text("text_start", generation=2, text="Hel"),
        ANSWER,
        END,
    ]
    gateway.on("GET", STREAM, Answer(body=frames))
    updates = list(connect().conversation("talk").send("Hi"))
    assert "".join(update.new_text for update in updates) == "Good\n\nHello!"


def test_statuses_that_may_pass_and_reconnect(gateway: Gateway, connect: Connect) -> None:
    leave = frame("reconnect", {"type": "reconnect", "delay_ms": 5})
    answers: list[Any] = [problem(503, "too_many_streams"), cut, Answer(502), Answer(204)]
    answers += [Answer(body=[replay(), SAID, leave]), Answer(body=[replay(1), ANSWER, END])]
    gateway.on("GET", STREAM, *answers)
    assert connect().conversation("talk").send("Hi").answer().content == "Hello!"
    assert len(gateway.seen("GET", "/stream")) == len(answers)


def test_a_refused_stream_is_an_error_with_its_page(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, problem(403, "insufficient_scope"))
    with pytest.raises(ApiError) as caught:
        connect().conversation("talk").send("Hi").answer()
    error = caught.value
    assert (error.code, error.status, error.request_id) == ("insufficient_scope", 403, "req-1")
    assert error.message == "A sentence about insufficient_scope."
    assert error.docs == f"{gateway.url}/docs/errors/insufficient_scope"


def test_a_stream_that_never_opens_is_given_up(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, cut)
    with pytest.raises(EverturnError) as caught:
        connect(limits=Limits(connections=3)).conversation("talk").send("Hi").answer()
    assert caught.value.code == "unreachable"
    assert len(gateway.seen("GET", "/stream")) == 3


def test_a_silent_stream_counts_as_dead(gateway: Gateway, connect: Connect) -> None:
    silence = threading.Event()
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, silence.wait]), Answer(body=[replay(1), ANSWER, END]))
    assert connect(limits=Limits(silence_seconds=0.2)).conversation("talk").send("Hi").answer().content == "Hello!"
    silence.set()


def test_the_stream_of_a_deleted_conversation_ends(gateway: Gateway, connect: Connect) -> None:
    end = frame("end", {"type": "end", "reason": "conversation_deleted", "reconnect": False})
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, end]))
    conversation = connect().conversation("talk")
    assert list(conversation.follow())[-1].state.ended == "conversation_deleted"
    assert conversation.state.ended == "conversation_deleted"
    with pytest.raises(EverturnError) as caught:
        connect().conversation("talk").send("Hi").answer()
    assert caught.value.code == "stream_ended"


def test_a_stream_goes_on_with_another_token(gateway: Gateway, connect: Connect) -> None:
    end = frame("end", {"type": "end", "reason": "token_expired", "reconnect": False})
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, end]), Answer(body=[replay(1), ANSWER, END]))
    tokens = iter(f"token{number}" for number in range(100))
    answer = connect(key=lambda: next(tokens)).conversation("talk").send("Hi").answer()
    assert answer.content == "Hello!"
    assert len(gateway.seen("GET", "/stream")) == 2


def test_limits_of_frames_and_answers(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, Answer(body=[replay(), event(1, "user_message", content="x" * 5000)]))
    with pytest.raises(EverturnError) as caught:
        connect(limits=Limits(frame_bytes=1000)).conversation("talk").send("Hi").answer()
    assert caught.value.code == "frame_too_large"
    gateway.on("GET", "conversations/talk", Answer(body={"title": "x" * 5000}))
    with pytest.raises(EverturnError) as caught:
        connect(limits=Limits(answer_bytes=1000)).conversation("talk").show()
    assert caught.value.code == "answer_too_large"


def test_a_lost_answer_is_asked_for_again_with_the_same_message_id(gateway: Gateway, connect: Connect) -> None:
    accepted = Answer(202, {"conversation_id": "talk", "message_id": "msg_1", "status": "queued"})
    gateway.on("POST", "conversations/talk/messages", cut, problem(503, "temporal_unavailable"), accepted)
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, ANSWER, END]))
    assert connect().conversation("talk").send("Hi").answer().content == "Hello!"
    ids = [request.json["message_id"] for request in gateway.seen("POST", "/messages")]
    assert [len(ids), len(set(ids))] == [3, 1]


def test_the_first_message_creates_the_conversation(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, ANSWER, END]))
    assert connect().conversation("talk", agent="poet").ask("Hi").content == "Hello!"
    (sent,) = gateway.seen("POST", "/messages")
    assert sent.json["create"] == {"agent": "poet"}
    assert gateway.seen("POST", "/conversations") == []


def test_what_was_not_confirmed_survives_the_program(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    gateway.on("POST", "conversations/talk/messages", cut)
    limits = Limits(attempts=2)
    with pytest.raises(EverturnError):
        connect(limits=limits).conversation("talk", storage=FileStorage(tmp_path)).send("Hi").answer()
    accepted = Answer(202, {"conversation_id": "talk", "message_id": "msg_1", "status": "queued"})
    gateway.on("POST", "conversations/talk/messages", accepted)
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, ANSWER, END]))
    conversation = connect().conversation("talk", storage=FileStorage(tmp_path))
    assert [message.content for message in conversation.pending()] == ["Hi"]
    (turn,) = conversation.restore()
    assert turn.answer().content == "Hello!"
    assert conversation.pending() == []
    assert len({request.json["message_id"] for request in gateway.seen("POST", "/messages")}) == 1


def test_a_message_that_is_refused_is_not_kept(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    gateway.on("POST", "conversations/talk/messages", problem(413, "message_too_long"))
    conversation = connect().conversation("talk", storage=FileStorage(tmp_path))
    with pytest.raises(ApiError):
        conversation.send("Hi").answer()
    assert conversation.pending() == []
    assert len(gateway.seen("POST", "/messages")) == 1


def test_a_message_that_was_taken_before_is_found_in_the_history(gateway: Gateway, connect: Connect) -> None:
    accepted = {"conversation_id": "talk", "message_id": "msg_1", "status": "accepted_before"}
    gateway.on("POST", "conversations/talk/messages", Answer(202, accepted))
    log = [_stored(1, "user_message", content="Hi"), _stored(2, "assistant_message", content="Hello!")]
    log += [_stored(3, "complete", agent_execution_id="run_1"), _stored(4, "user_message", "msg_2", content="More")]

    def page(request: Received) -> Answer:
        before = int(request.query["before"])
        known = [event for event in log if event["sequence_number"] < before][-2:]
        return Answer(body={"events": known, "has_more": known != log[: len(known)]})

    gateway.on("GET", "conversations/talk/events", page)
    assert connect().conversation("talk").send("Hi", message_id="mine").answer().content == "Hello!"
    assert gateway.seen("GET", "/stream") == []


@pytest.mark.parametrize("outcome", ["error", "cancelled"])
def test_a_turn_without_an_answer_raises(gateway: Gateway, connect: Connect, outcome: str) -> None:
    data = {"code": "turn_lost", "message": "It is lost."} if outcome == "error" else {"reason": "requested"}
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, event(2, outcome, agent_execution_id="run_1", **data)]))
    with pytest.raises(TurnError) as caught:
        connect().conversation("talk").send("Hi").answer()
    assert caught.value.code == ("turn_lost" if outcome == "error" else "cancelled")
    assert caught.value.docs == (f"{gateway.url}/docs/errors/turn_lost" if outcome == "error" else None)


def test_a_message_that_is_steered_ends_with_the_turn_that_it_joined(gateway: Gateway, connect: Connect) -> None:
    joined = event(2, "user_message", content="And more", message_id="msg_1")
    frames = [replay(), event(1, "user_message", "msg_0", message_id="msg_0", content="Hi"), joined]
    frames += [event(3, "complete", "msg_0", agent_execution_id="run_1")]
    gateway.on("GET", STREAM, Answer(body=frames))
    turn = connect().conversation("talk").send("And more", on_busy="steer")
    assert turn.answer().end.turn == "msg_0"
    assert gateway.seen("POST", "/messages")[0].json["on_busy"] == "steer"


def _stored(number: int, type: str, turn: str = "msg_1", **data: Any) -> dict[str, Any]:
    own = {"message_id": turn} | data
    return {
        "id": f"event-{number}",
        "conversation_id": "talk",
        "message_id": turn,
        "event_type": type,
        "event_data": own if type != "assistant_message" else data,
        "sequence_number": number,
        "created_at": "2026-11-18T11:06:41.000Z",
    }


def _act(number: int, id: str) -> bytes:
    return event(number, "act", tool_name="add", tool_input={"a": 1, "b": 2}, execution_id=id, call_id=id)


def _asked(number: int, id: str) -> bytes:
    return event(number, "client_tool_requested", tool_name="add", execution_id=id, call_id=id)


def _observed(number: int, id: str) -> bytes:
    return event(number, "observe", tool_name="add", result=3, execution_id=id, call_id=id)


def test_client_tools_run_by_themselves_and_once(gateway: Gateway, connect: Connect) -> None:
    """A call that has its result later in the replay is not run; one that fails tells the model why."""
    posted = threading.Event()

    def take(request: Received) -> Answer:
        posted.set()
        return Answer(202, {"execution_id": "exec_2", "status": "stored"})

    def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    gateway.on("GET", "conversations/talk/client-tools", Answer(body={"client_tools": []}))
    gateway.on("POST", "conversations/talk/client-tools/exec_2", problem(503, "temporal_unavailable"), take)
    frames: list[Any] = [
        replay(6),
        SAID,
        _act(2, "exec_1"),
        _asked(3, "exec_1"),
        _observed(4, "exec_1"),
        _act(5, "exec_2"),
    ]
    frames += [_asked(6, "exec_2"), posted.wait, _observed(7, "exec_2")]
    frames += [event(8, "complete", agent_execution_id="run_1")]
    gateway.on("GET", STREAM, Answer(body=frames))
    connect().conversation("talk", tools={"add": add}).send("Hi").answer()
    bodies = [request.json for request in gateway.seen("POST", "exec_2")]
    assert bodies == [{"result": {"sum": 3}, "is_error": False}] * 2
    assert gateway.seen("POST", "exec_1") == []


def test_a_client_tool_that_raises(gateway: Gateway, connect: Connect) -> None:
    posted = threading.Event()

    def take(request: Received) -> Answer:
        posted.set()
        return Answer(202, {"execution_id": "exec_1", "status": "stored"})

    def add(a: int, b: int) -> None:
        raise ValueError("There is no such number.")

    waiting = {"execution_id": "exec_1", "tool_name": "add", "tool_input": {"a": 1, "b": 2}}
    gateway.on("GET", "conversations/talk/client-tools", Answer(body={"client_tools": [waiting]}))
    gateway.on("POST", "conversations/talk/client-tools/exec_1", take)
    gateway.on("GET", STREAM, Answer(body=[replay(), posted.wait, SAID, ANSWER, END]))
    connect().conversation("talk", tools={"add": add}).send("Hi").answer()
    (request,) = gateway.seen("POST", "exec_1")
    assert request.json == {"result": {"error": "There is no such number."}, "is_error": True}


@pytest.mark.parametrize("may_repeat", [True, False])
def test_a_client_tool_that_was_cut_off(gateway: Gateway, connect: Connect, tmp_path: Path, may_repeat: bool) -> None:
    """After a crash, a tool runs again only if it says that it may."""
    FileStorage(tmp_path)["everturn-tool/talk/exec_1"] = '{"claimant": "me"}'
    posted = threading.Event()

    def take(request: Received) -> Answer:
        posted.set()
        return Answer(202, {"execution_id": "exec_1", "status": "stored"})

    waiting = {"execution_id": "exec_1", "tool_name": "add", "tool_input": {"a": 1, "b": 2}}
    gateway.on("GET", "conversations/talk/client-tools", Answer(body={"client_tools": [waiting]}))
    gateway.on("POST", "conversations/talk/client-tools/exec_1", take)
    gateway.on("GET", STREAM, Answer(body=[replay(), posted.wait, SAID, ANSWER, END]))
    tool = ClientTool(lambda a, b: a + b, may_repeat=may_repeat)
    connect().conversation("talk", tools={"add": tool}, storage=FileStorage(tmp_path)).send("Hi").answer()
    (request,) = gateway.seen("POST", "exec_1")
    assert request.json["is_error"] is not may_repeat
    (claim,) = gateway.seen("POST", "/claim")
    assert claim.json == {"claimant": "me"}
    assert list(FileStorage(tmp_path)) == []


@pytest.mark.parametrize("may_repeat", [True, False])
def test_a_call_that_another_device_has_begun(gateway: Gateway, connect: Connect, may_repeat: bool) -> None:
    """While the other device holds it, the tool does not run; when that one has died, it runs only if it may."""
    posted, runs = threading.Event(), []

    def take(request: Received) -> Answer:
        posted.set()
        return Answer(202, {"execution_id": "exec_1", "status": "stored"})

    waiting = {"execution_id": "exec_1", "tool_name": "add", "tool_input": {"a": 1, "b": 2}}
    gateway.on("GET", "conversations/talk/client-tools", Answer(body={"client_tools": [waiting]}))
    held = problem(409, "client_tool_claimed", retry_after="1")
    gateway.on("POST", "conversations/talk/client-tools/exec_1/claim", held, Answer(body={"is_repeated": True}))
    gateway.on("POST", "conversations/talk/client-tools/exec_1", take)
    comments = [*[b": still here\n\n", lambda: posted.wait(0.1)] * 50, posted.wait]
    gateway.on("GET", STREAM, Answer(body=[replay(), *comments, SAID, ANSWER, END]))
    tool = ClientTool(lambda a, b: runs.append(a + b), may_repeat=may_repeat)
    connect().conversation("talk", tools={"add": tool}).ask("Hi")
    assert len(gateway.seen("POST", "/claim")) == 2
    assert runs == ([3] if may_repeat else [])
    (request,) = gateway.seen("POST", "exec_1")
    assert request.json["is_error"] is not may_repeat


def test_a_tool_that_takes_long_keeps_its_claim(
    gateway: Gateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "_RENEW_SECONDS", 0.01)
    posted, renewed = threading.Event(), threading.Event()
    claimants = []

    def claim(request: Received) -> Answer:
        claimants.append(request.json["claimant"])
        if len(claimants) == 3:
            renewed.set()
        return Answer(body={"is_repeated": False})

    def take(request: Received) -> Answer:
        posted.set()
        return Answer(202, {"execution_id": "exec_1", "status": "stored"})

    waiting = {"execution_id": "exec_1", "tool_name": "add", "tool_input": {"a": 1, "b": 2}}
    gateway.on("GET", "conversations/talk/client-tools", Answer(body={"client_tools": [waiting]}))
    gateway.on("POST", "conversations/talk/client-tools/exec_1/claim", claim)
    gateway.on("POST", "conversations/talk/client-tools/exec_1", take)
    gateway.on("GET", STREAM, Answer(body=[replay(), posted.wait, SAID, ANSWER, END]))
    connect().conversation("talk", tools={"add": lambda a, b: renewed.wait(30)}).ask("Hi")
    (request,) = gateway.seen("POST", "exec_1")
    assert request.json == {"result": True, "is_error": False}
    assert len(set(claimants)) == 1


def test_approvals_are_answered_for_what_was_shown(gateway: Gateway, connect: Connect) -> None:
    call = {"execution_id": "exec_1", "input_hash": "hash", "tool_name": "refund", "tool_input": {}}
    gateway.on("GET", "conversations/talk/approvals", Answer(body={"approvals": [call]}))
    gateway.on("POST", "conversations/talk/approvals/exec_1", Answer(body={"decision": "approved"}))
    conversation = connect().conversation("talk")
    (pending,) = conversation.approvals()
    conversation.approve(pending, tool_input={"order": 7}, remember=True)
    conversation.deny(pending, reason="No.")
    approved, denied = [request.json for request in gateway.seen("POST", "exec_1")]
    assert approved == {"decision": "approve", "input_hash": "hash", "remember": True, "tool_input": {"order": 7}}
    assert denied == {"decision": "deny", "input_hash": "hash", "reason": "No."}


def test_a_question_is_answered_or_declined(gateway: Gateway, connect: Connect) -> None:
    call = {"execution_id": "exec_1", "input_hash": "hash", "tool_name": "book", "tool_input": {}}
    question = {"message": "Which day?", "schema": {"type": "object", "properties": {"day": {"type": "string"}}}}
    gateway.on("GET", "conversations/talk/approvals", Answer(body={"approvals": [{**call, "question": question}]}))
    gateway.on("POST", "conversations/talk/approvals/exec_1", Answer(body={"decision": "approved"}))
    conversation = connect().conversation("talk")
    (pending,) = conversation.approvals()
    assert pending["question"]["schema"] == question["schema"]
    conversation.approve(pending, answer={"day": "Monday"})
    conversation.approve(pending, answer={})
    conversation.approve(pending)
    conversation.deny(pending)
    approved = {"decision": "approve", "input_hash": "hash"}
    assert [request.json for request in gateway.seen("POST", "exec_1")] == [
        {**approved, "answer": {"day": "Monday"}},
        {**approved, "answer": {}},
        approved,
        {"decision": "deny", "input_hash": "hash"},
    ]


def test_an_answer_to_an_approval_is_not_sent_twice(gateway: Gateway, connect: Connect) -> None:
    gateway.on("POST", "conversations/talk/approvals/exec_1", cut)
    with pytest.raises(EverturnError):
        connect().conversation("talk").approve({"execution_id": "exec_1", "input_hash": "hash"})
    assert len(gateway.seen("POST", "exec_1")) == 1


def test_pages_are_read_to_their_end(gateway: Gateway, connect: Connect) -> None:
    first = Answer(body={"timeline": [2], "nextBefore": 7, "total": 1, "conversationId": "talk"})
    last = Answer(body={"timeline": [1], "nextBefore": None, "total": 1, "conversationId": "talk"})
    gateway.on("GET", "conversations/talk/messages", first, last)
    pages = list(connect().conversation("talk").timeline(page_size=1))
    assert [page["timeline"] for page in pages] == [[2], [1]]
    assert [request.query for request in gateway.received] == [{"limit": "1"}, {"limit": "1", "before": "7"}]


def test_ask_post_and_a_call_that_is_answered_by_hand(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, ANSWER, END]))
    gateway.on("POST", "conversations/talk/client-tools/exec_1", Answer(202, {"execution_id": "exec_1"}))
    conversation = connect().conversation("talk", history=3)
    assert conversation.post("Hi", on_busy="steer")["message_id"] == "msg_1"
    answer = conversation.ask("Hi", message_id="mine")
    assert (answer.content, answer.end.outcome) == ("Hello!", "complete")
    assert [item.type for item in answer.items] == ["user_message", "assistant_message", "end"]
    assert conversation.answer_tool("exec_1", {"a": 1}, is_error=True) == {"execution_id": "exec_1"}
    sent = [request.json for request in gateway.received if request.method == "POST"]
    assert sent[0]["on_busy"] == "steer"
    assert sent[1]["message_id"] == "mine"
    assert sent[2] == {"result": {"a": 1}, "is_error": True}
    (page,) = gateway.seen("GET", "/events")
    assert page.query["limit"] == "3"


def test_an_outcome_is_settled(gateway: Gateway, connect: Connect) -> None:
    settled = {"execution_id": "exec_1", "tool_name": "pay", "outcome": "happened", "settled_by": "ann"}
    gateway.on("POST", "conversations/talk/tool-calls/exec_1/outcome", Answer(200, settled), Answer(200, settled))
    conversation = connect().conversation("talk")
    assert conversation.settle_outcome("exec_1", "happened", result={"receipt": 7}, comment="Seen.") == settled
    conversation.settle_outcome("exec_1", "not_happened")
    sent = [request.json for request in gateway.received if request.method == "POST"]
    assert sent == [
        {"outcome": "happened", "result": {"receipt": 7}, "comment": "Seen."},
        {"outcome": "not_happened"},
    ]


def test_the_list_is_followed_over_a_cut(gateway: Gateway, connect: Connect) -> None:
    def row(id: str, second: int) -> dict[str, Any]:
        return {"id": id, "updated_at": f"2026-11-24T08:00:0{second}.000Z"}

    before = frame("list", {"type": "list", "conversations": [row("a", 1), row("b", 2)]})
    changed = frame("conversation_changed", {"type": "conversation_changed", "conversation": row("a", 3)})
    after = frame("list", {"type": "list", "conversations": [row("c", 4)]})
    end = frame("end", {"type": "end", "reason": "token_expired", "reconnect": False})
    first = Answer(body=[b"retry: 1\n\n", before, changed, frame("later", {"type": "later"})])
    gateway.on("GET", "conversation-list/stream", first, Answer(body=[after, end]))
    seen = [[one["id"] for one in rows] for rows in connect().follow_conversations()]
    assert [rows for at, rows in enumerate(seen) if rows != seen[at - 1]] == [["b", "a"], ["a", "b"], ["c"]]


def test_one_loop_reads_at_a_time(gateway: Gateway, connect: Connect) -> None:
    gateway.on("GET", STREAM, Answer(body=[replay(), SAID, ANSWER, END]))
    conversation = connect().conversation("talk")
    for _ in conversation.follow():
        with pytest.raises(RuntimeError):
            next(iter(conversation.follow()))
        break
    assert conversation.send("Hi").answer().content == "Hello!"


def test_both_clients_have_the_same_methods() -> None:
    for name in ("Everturn", "Conversation", "Turn"):
        plain, waiting = getattr(everturn, name), getattr(everturn, f"Async{name}")
        own = {method for method in vars(plain) if not method.startswith("_")}
        assert own == {method for method in vars(waiting) if not method.startswith("_")}
        for method in own - {"message", "message_id", "id", "state"}:
            one, other = getattr(plain, method), getattr(waiting, method)
            assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters), method
            first, second = (inspect.getdoc(one) or "", inspect.getdoc(other) or "")
            assert method == "send" or first == second, method
