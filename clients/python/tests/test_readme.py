"""The examples of the README, and the example of docs/api/clients.md, run as a user runs them.

The wheel is in an empty environment, and the stack is a real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stack import Stack, binary

from everturn import Everturn, timeline

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text("utf-8")
PAGE = (PROJECT.parents[1] / "docs/api/clients.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)
(HELLO,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
(CONFIG,) = re.findall(r"```toml\n(.*?)```", README, re.S)
SEND, STREAM, AFTER_A_CRASH, CLIENT_TOOL, APPROVAL, OWN_TESTS = EXAMPLES


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not binary().exists() and "EVERTURN_BIN" not in os.environ:
        pytest.skip("There is no binary: make everturn, or set EVERTURN_BIN.")
    stack = Stack(binary(), tmp_path_factory.mktemp("stack"), CONFIG)
    stack.start()
    yield stack
    stack.stop()


class Installed:
    """Python in an environment with the built wheel, outside of the source tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._python = str(folder / "venv" / "bin" / "python")
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(PROJECT)]
        subprocess.run(build, check=True, capture_output=True)
        venv.create(folder / "venv", with_pip=True)
        (wheel,) = folder.glob("*.whl")
        self.pip_install(str(wheel))

    def pip_install(self, *packages: str) -> None:
        """Installs packages, in the versions of requirements.txt."""
        quiet = ["--quiet", "--disable-pip-version-check"]
        pinned = ["--constraint", str(PROJECT / "requirements.txt")]
        subprocess.run([self._python, "-m", "pip", "install", *quiet, *pinned, *packages], check=True)

    def run(self, *arguments: str) -> str:
        """What a program prints."""
        command = [self._python, *arguments]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def begin(self, program: str) -> subprocess.Popen[str]:
        """A program that runs."""
        command = [self._python, "-c", program]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


def at(stack: Stack, example: str) -> str:
    """An example, for this stack."""
    return example.replace("http://127.0.0.1:8080", stack.url)


def said(stack: Stack, conversation_id: str) -> tuple[list[str], list[str]]:
    """What the user and the agent said, by the API's timeline."""
    with Everturn(stack.url) as everturn:
        (page,) = everturn.conversation(conversation_id).timeline()
    texts = [(item["type"], item.get("content") or "") for item in page["timeline"]]
    user, agent = ([text for kind, text in texts if kind == wanted] for wanted in ("user_message", "assistant_message"))
    return user, agent


def common(timeline: Iterable[Any]) -> list[dict[str, Any]]:
    """The items of the API's timeline that every client can make, with their fields (clients/transcripts/README.md)."""
    types = {"user_message", "thought", "tool_call", "tool_result", "assistant_message"}
    fields = {"id", "type", "sequenceNumber", "timestamp", "agentExecutionId", "parentToolCallId"}
    fields |= {"content", "reasoning", "citations", "attachments", "retryOf"}
    fields |= {"toolName", "title", "toolInput", "toolOutput", "isError", "executionId", "callId"}
    items = (item for item in timeline if item["type"] in types)
    return [{field: value for field, value in item.items() if field in fields} for item in items]


def printed(program: subprocess.Popen[str], characters: int = -1) -> str:
    """The next characters that a program prints, or all that are left."""
    assert program.stdout is not None
    return program.stdout.read(characters)


def test_send(stack: Stack, installed: Installed) -> None:
    assert installed.run("-c", at(stack, SEND)).startswith("6 * 7 = 42.")


def test_the_example_of_the_page_on_clients(stack: Stack, installed: Installed) -> None:
    first, rest = installed.run("-c", at(stack, HELLO)).split("\n", 1)
    assert first.startswith("2 + 2 = 4.")
    assert "21 * 2 = 42." in rest


def test_client_tool(stack: Stack, installed: Installed) -> None:
    assert "returned: Bread and cheese." in installed.run("-c", at(stack, CLIENT_TOOL))


def test_approval(stack: Stack, installed: Installed) -> None:
    shown, answer = installed.run("-c", at(stack, APPROVAL)).split("\n", 1)
    assert shown == "current_time is to run with {'time_zone': 'Asia/Tokyo'}"
    assert answer.startswith("In Seoul it is ")


def test_stream_with_the_approval_of_somebody_else(stack: Stack, installed: Installed) -> None:
    program = installed.begin(at(stack, STREAM))
    shown = printed(program, 10)
    with Everturn(stack.url) as everturn:
        conversation = everturn.conversation("times")
        for update in conversation.follow():
            if update.state.status == "waiting":
                (call,) = (item for item in update.state.items if item.type == "tool_call")
                conversation.approve(call)
                break
    rest = printed(program)
    _, (answer,) = said(stack, "times")
    assert shown + rest == f"I need to look up the time in Tokyo.\n\n{answer}"


def test_the_program_is_killed_in_the_middle_of_a_message(stack: Stack, installed: Installed) -> None:
    program = installed.begin(at(stack, AFTER_A_CRASH))
    assert printed(program, 4) == "I am"
    program.kill()
    program.wait()
    shown = installed.run("-c", at(stack, AFTER_A_CRASH))
    messages, (answer,) = said(stack, "orders")
    assert messages == ["Tell me about order 4711."]
    assert shown == answer


def test_the_gateway_is_killed_in_the_middle_of_a_message(stack: Stack, installed: Installed) -> None:
    example = at(stack, AFTER_A_CRASH).replace("orders", "more-orders")
    program = installed.begin(example)
    shown = printed(program, 4)
    stack.kill()
    stack.start()
    rest = printed(program)
    messages, (answer,) = said(stack, "more-orders")
    assert messages == ["Tell me about order 4711."]
    assert shown + rest == answer


def test_a_client_tool_waits_for_its_client_while_the_stack_is_killed(stack: Stack) -> None:
    """A call that waits is run when everything is back, and the state is the API's timeline."""
    with Everturn(stack.url) as everturn:
        everturn.conversation("later").send('call read_notes {"name": "x"}')
        for update in everturn.conversation("later").follow():
            if update.state.status == "waiting":
                break
    stack.kill()
    stack.start()
    with Everturn(stack.url) as everturn:
        conversation = everturn.conversation("later", tools={"read_notes": lambda name: f"Note {name}"})
        for update in conversation.follow():
            if update.state.status == "idle":
                break
        (page,) = conversation.timeline()
        ours = timeline(conversation.state.items)
        assert ours == common(page["timeline"])


def test_own_tests(installed: Installed) -> None:
    installed.pip_install("pytest")
    (installed.folder / "test_own.py").write_text(OWN_TESTS, "utf-8")
    assert "2 passed" in installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py")


def test_the_wheel_is_typed(installed: Installed) -> None:
    installed.pip_install("mypy", "pytest")
    for number, program in enumerate([*EXAMPLES, HELLO]):
        (installed.folder / f"example_{number}.py").write_text(program, "utf-8")
        installed.run("-m", "mypy", "--strict", f"example_{number}.py")
