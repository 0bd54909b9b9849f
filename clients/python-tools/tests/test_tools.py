"""Tools as activities, in the SDK's environment for tests: the contract of docs/tools/remote.md."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import tomllib
import unittest
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Annotated, Any, Literal
from unittest import mock

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from everturn_tools import Call, OutcomeUnknown, ToolError
from everturn_tools.results import LARGE_BYTES, MAX_BYTES
from everturn_tools.schema import input_schema
from everturn_tools.tool import TOOLS, Effect, Tool

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/python-tool"
SOURCES = ROOT / "clients/python-tools/src"


def call(tool_input: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    """The argument of an activity. `run_id` is that of the SDK's environment."""
    ids = {name: name for name in ("tool_call_id", "execution_id", "conversation_id", "message_id", "idempotency_key")}
    run_id = ActivityEnvironment.default_info().workflow_run_id
    fields = {"tool_name": "t", "effect": "once", "run_id": run_id, "tool_input": tool_input or {}, "newer": 1}
    return {**ids, **fields, **others}


async def run(
    function: Callable[..., Any],
    fields: dict[str, Any],
    effect: Effect = "once",
    environment: ActivityEnvironment | None = None,
) -> Any:
    made = Tool(function, None, effect, {"description": "A test."})
    return await (environment or ActivityEnvironment()).run(made.activity(), fields)


class Gateway(BaseHTTPRequestHandler):
    """Takes results. The first answers are those of `answers`, then 202."""

    answers: list[int]
    requests: list[tuple[str, str | None, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.answers.pop(0) if self.answers else 202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        return


@asynccontextmanager
async def gateway(*answers: int) -> AsyncIterator[list[tuple[str, str | None, bytes]]]:
    Gateway.answers, Gateway.requests = list(answers), []
    server = HTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    address = {"EVERTURN_URL": f"http://127.0.0.1:{server.server_port}", "EVERTURN_TOKEN": "secret"}
    try:
        with mock.patch.dict("os.environ", address):
            yield Gateway.requests
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


class TestTools(unittest.IsolatedAsyncioTestCase):
    async def test_a_tool_gets_its_input_and_its_call(self) -> None:
        async def book(amount: int, whole: Call, note: str = "-") -> list[Any]:
            return [amount, note, whole.execution_id, whole.owner_id]

        self.assertEqual(
            await run(book, call({"amount": 5, "whole": 1, "more": 2}, owner_id="ada")), [5, "-", "execution_id", "ada"]
        )

    async def test_a_function_without_async_runs_beside_the_loop(self) -> None:
        def where() -> bool:
            return threading.current_thread() is threading.main_thread()

        self.assertFalse(await run(where, call()))

    async def test_a_tool_that_runs_beats(self) -> None:
        beats = asyncio.Event()
        environment = ActivityEnvironment()
        environment.on_heartbeat = lambda *_: beats.set()
        await asyncio.wait_for(run(beats.wait, call(), environment=environment), 10)

    async def test_a_cancel_reaches_the_tool(self) -> None:
        environment, began, undone = ActivityEnvironment(), asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            began.set()
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                undone.set()
                raise

        running = asyncio.create_task(run(slow, call(), environment=environment))
        await began.wait()
        environment.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertTrue(undone.is_set())

    async def test_a_cancel_reaches_a_function_without_async(self) -> None:
        environment, began, seen = ActivityEnvironment(), threading.Event(), threading.Event()

        def slow(whole: Call) -> None:
            began.set()
            if whole.cancelled.wait(10):
                seen.set()

        running = asyncio.create_task(run(slow, call(), environment=environment))
        await asyncio.to_thread(began.wait)
        environment.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertTrue(await asyncio.to_thread(seen.wait, 10))

    async def test_errors_tell_the_model_what_to_do(self) -> None:
        def fails(how: str) -> None:
            raise {"no": ToolError("Be positive."), "later": ToolError("Wait.", retry=True)}.get(
                how, OutcomeUnknown("?")
            )

        for how, message, kind, is_final in [
            ("no", "Be positive.", "ToolError", True),
            ("later", "Wait.", "ToolError", False),
            ("who knows", "?", "OutcomeUnknown", False),
        ]:
            with self.assertRaises(ApplicationError) as caught:
                await run(fails, call({"how": how}))
            failure = caught.exception
            self.assertEqual((failure.message, failure.type, failure.non_retryable), (message, kind, is_final))
        with self.assertRaisesRegex(ApplicationError, "does not fit fails: .*'how'"):
            await run(fails, call())

    async def test_a_reset_workflow_does_not_run_a_once_tool_again(self) -> None:
        ran: list[int] = []

        def effect() -> None:
            ran.append(1)

        with self.assertRaises(ApplicationError) as caught:
            await run(effect, call(run_id="another"))
        self.assertEqual((caught.exception.type, ran), ("OutcomeUnknown", []))
        await run(effect, call(run_id="another", effect="read"), "read")
        self.assertEqual(ran, [1])


class TestLargeResults(unittest.IsolatedAsyncioTestCase):
    async def test_a_large_result_is_sent_to_the_gateway_until_it_answers(self) -> None:
        text = "x" * LARGE_BYTES
        async with gateway(503) as requests:
            self.assertIsNone(await run(lambda: text, call()))
            self.assertEqual(await run(lambda: "small", call()), "small")
        path = "/api/v1/agent/conversations/conversation_id/remote-tools/execution_id"
        self.assertEqual([(seen[0], seen[1]) for seen in requests], [(path, "Bearer secret")] * 2)
        run_id = ActivityEnvironment.default_info().workflow_run_id
        self.assertEqual(requests[1][2].decode(), f'{{"run_id": "{run_id}", "result": "{text}"}}')

    async def test_a_result_that_nobody_takes_is_an_error(self) -> None:
        async with gateway(409) as requests:
            with self.assertRaisesRegex(ApplicationError, "could not be stored: the gateway answered 409") as caught:
                await run(lambda: "x" * LARGE_BYTES, call())
            self.assertEqual((caught.exception.type, len(requests)), ("OutcomeUnknown", 1))
            with self.assertRaisesRegex(ApplicationError, "Ask for a smaller part"):
                await run(lambda: "x" * MAX_BYTES, call())
            with self.assertRaisesRegex(ApplicationError, "no JSON"):
                await run(lambda: {1, 2}, call())
            self.assertEqual(len(requests), 1)

    async def test_without_a_gateway_results_go_through_the_engine(self) -> None:
        self.assertEqual(await run(lambda: "x" * LARGE_BYTES, call()), "x" * LARGE_BYTES)
        self.assertEqual(await run(lambda: b"bytes", call()), b"bytes")


class TestDocuments(unittest.TestCase):
    def test_the_page_on_remote_tools_prints_the_example(self) -> None:
        page = (ROOT / "docs/tools/remote.md").read_text()
        self.assertIn(f"```python\n{(EXAMPLE / 'worker.py').read_text()}```\n", page)

    def test_the_program_of_the_readme_has_a_tool(self) -> None:
        [program] = re.findall(r"```python\n(.*?)```", (ROOT / "clients/python-tools/README.md").read_text(), re.S)
        with mock.patch.dict(TOOLS, clear=True):
            exec(program, {"__name__": "my_tools"})
            self.assertEqual(list(TOOLS), ["transfer"])
            with self.assertRaisesRegex(ValueError, "two tools with the name 'transfer'"):
                exec(program, {"__name__": "my_tools"})


class TestDescriptions(unittest.TestCase):
    def test_type_hints_are_the_schema(self) -> None:
        def find(
            text: Annotated[str, "What to find."],
            kind: Literal["mail", "file"],
            whole: Call,
            tags: list[str] | None = None,
            more: dict[str, Any] | None = None,
        ) -> None:
            """Finds."""

        schema = input_schema(find)
        self.assertEqual((schema["required"], schema["additionalProperties"]), (["text", "kind"], False))
        null = {"type": "null"}
        self.assertEqual(
            schema["properties"],
            {
                "text": {"type": "string", "description": "What to find."},
                "kind": {"enum": ["mail", "file"]},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, null]},
                "more": {"anyOf": [{"type": "object"}, null]},
            },
        )

        def wrong(when: Path) -> None:
            """Has no schema."""

        with self.assertRaisesRegex(TypeError, r"wrong\(when\) .* has no schema"):
            input_schema(wrong)

    def test_a_worker_without_temporal_says_so_in_a_line(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
        ended = subprocess.run([sys.executable, EXAMPLE / "worker.py"], env=environment, capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)
        self.assertRegex(ended.stderr, r"\ATemporal at 127\.0\.0\.1:1 cannot be reached: set TEMPORAL_ADDRESS\.")

    def test_describe_prints_the_configuration_of_the_example(self) -> None:
        command = [sys.executable, "-m", "everturn_tools", "describe", "worker"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        printed = subprocess.run(
            command, env=environment, cwd=EXAMPLE, check=True, capture_output=True, text=True
        ).stdout
        self.assertEqual(tomllib.loads(printed), tomllib.loads((EXAMPLE / "everturn.toml").read_text()))
        self.assertEqual(printed, (EXAMPLE / "everturn.toml").read_text())
