"""The gateway in memory that programs are tested with: both clients take it for a real one."""

from __future__ import annotations

import asyncio

import pytest

from everturn import ApiError, AsyncEverturn, Everturn, TurnError, pending_approvals
from everturn.testing import Failure, ScriptedGateway, ToolUse


def test_a_text_is_the_answer() -> None:
    gateway = ScriptedGateway(lambda message: f"You said: {message}")
    with Everturn(transport=gateway) as everturn:
        conversation = everturn.conversation("c")
        assert conversation.ask("Hi", message_id="one").content == "You said: Hi"
        assert conversation.ask("Hi", message_id="one").content == "You said: Hi"
        assert conversation.ask("And now?").content == "You said: And now?"
        assert everturn.conversation("d").ask("Hi").content == "You said: Hi"
    assert gateway.messages == ["Hi", "And now?", "Hi"]


def test_tools_of_workers_and_of_the_program() -> None:
    gateway = ScriptedGateway(
        lambda _: [
            "Let me see.",
            ToolUse("clock", result="noon"),
            ToolUse("add", {"a": 1, "b": 2}, by="client"),
            "Three.",
        ]
    )
    with Everturn(transport=gateway) as everturn:
        answer = everturn.conversation(tools={"add": lambda a, b: a + b}).ask("Add")
    assert [item.type for item in answer.items] == [
        "user_message",
        "thought",
        "tool_call",
        "tool_call",
        "assistant_message",
        "end",
    ]
    assert gateway.results == [("clock", "noon"), ("add", 3)]


@pytest.mark.parametrize("approve", [True, False])
def test_an_approval_waits_for_the_program(approve: bool) -> None:
    gateway = ScriptedGateway(
        lambda _: [ToolUse("pay", {"sum": 1}, result="paid", needs_approval=True), "Done." if approve else "Not done."]
    )
    with Everturn(transport=gateway) as everturn:
        conversation = everturn.conversation()
        turn = conversation.send("Pay")
        answered: set[str] = set()
        for update in turn:
            for call in pending_approvals(update.state):
                if call.id in answered:
                    continue
                answered.add(call.id)
                (listed,) = conversation.approvals()
                assert listed["execution_id"] == call.execution_id
                if approve:
                    conversation.approve(call, tool_input={"sum": 2})
                else:
                    conversation.deny(call, reason="Too much.")
                with pytest.raises(ApiError):
                    conversation.deny(call)
        assert turn.answer().content == ("Done." if approve else "Not done.")
        (call,) = (item for item in turn.answer().items if item.type == "tool_call")
    assert call.tool_input == ({"sum": 2} if approve else {"sum": 1})
    assert (call.state, "Too much." in str(call.tool_output)) == (("done", False) if approve else ("failed", True))


@pytest.mark.parametrize("answer", [{"day": "Monday"}, None])
def test_a_question_waits_for_the_program_after_an_approval(answer: dict[str, str] | None) -> None:
    question = {"message": "Which day?", "schema": {"type": "object", "properties": {"day": {"type": "string"}}}}
    gateway = ScriptedGateway(lambda _: [ToolUse("book", result="done", needs_approval=True, question=question), "Ok."])
    with Everturn(transport=gateway) as everturn:
        conversation = everturn.conversation()
        turn = conversation.send("Book")
        answered: list[str | None] = []
        for update in turn:
            for call in pending_approvals(update.state):
                assert call.approval is not None
                if call.approval.input_hash in answered:
                    continue
                answered.append(call.approval.input_hash)
                (listed,) = conversation.approvals()
                assert listed["input_hash"] == call.approval.input_hash
                if call.approval.question is None:
                    conversation.approve(call)
                elif answer is None:
                    conversation.deny(call)
                else:
                    assert listed["question"]["message"] == call.approval.question.message == "Which day?"
                    conversation.approve(call, answer=answer)
        (call,) = (item for item in turn.answer().items if item.type == "tool_call")
    assert answered == ["hash", "hash of the question"]
    assert call.approval is not None
    assert (call.approval.state, call.approval.answer) == (
        ("declined", None) if answer is None else ("approved", answer)
    )
    assert (call.state, call.tool_output) == ("done", "done")


def test_a_call_is_answered_by_hand_with_await() -> None:
    async def main() -> None:
        gateway = ScriptedGateway(lambda _: [ToolUse("open", by="client"), Failure("step_limit")])
        async with AsyncEverturn(transport=gateway) as everturn:
            conversation = everturn.conversation()
            turn = conversation.send("Open")
            async for update in turn:
                if update.state.status == "waiting" and not gateway.results:
                    for call in await conversation.client_tools():
                        await conversation.answer_tool(call["execution_id"], {"text": "x"})
            with pytest.raises(TurnError) as caught:
                await turn.answer()
            assert caught.value.code == "step_limit"
        assert gateway.results == [("open", {"text": "x"})]

    asyncio.run(asyncio.wait_for(main(), 30))
