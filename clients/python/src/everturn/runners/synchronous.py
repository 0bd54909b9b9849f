"""Carries out effects without ``await``."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

import httpx

from ..core.effects import Answer, Call, Close, Effect, Emit, Flow, Lost, Open, Raised, Read, Send, Sleep, Spawn, Stream
from ..core.one_reader import OneReader
from ..core.session import TurnCore
from ..core.stream import is_stream
from ..core.tools import ClientTool, ClientTools
from ..options import Limits
from . import wire

T = TypeVar("T")


class SyncRunner:
    """Runs flows in the caller's thread. Flows that they spawn run there, too, one after the other."""

    def __init__(self, url: str, limits: Limits, transport: httpx.BaseTransport | None) -> None:
        self._limits = limits
        self._client = httpx.Client(
            base_url=url, timeout=wire.timeout(limits, limits.request_seconds), transport=transport
        )

    def run(self, flow: Flow[T]) -> T:
        """Runs a flow to its end, and returns its value."""
        scope = _Scope()
        try:
            effect = next(flow)
            while True:
                effect = flow.send(self._do(effect, scope))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()
            scope.close_stream()

    def stream(self, flow: Stream[T]) -> Generator[T, None, None]:
        """Runs a flow, and yields what it emits."""
        scope = _Scope()
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = next(flow)
                else:
                    effect = flow.send(self._do(effect, scope))
        except StopIteration:
            return
        finally:
            flow.close()
            scope.close_stream()

    def check(self, tools: ClientTools | None) -> None:
        """Raises ``TypeError`` for a tool that is an async function, which this runner cannot call."""
        for name, tool in (tools or {}).items():
            if inspect.iscoroutinefunction(tool.run if isinstance(tool, ClientTool) else tool):
                raise TypeError(f"The tool {name} is an async function: use AsyncEverturn.")

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _do(self, effect: Effect, scope: _Scope) -> Any:
        match effect:
            case Send():
                return self._send(effect)
            case Open():
                return self._open(effect, scope)
            case Read():
                return scope.read()
            case Close():
                return scope.close_stream()
            case Sleep(seconds):
                return time.sleep(seconds)
            case Call():
                return self._call(effect)
            case Spawn(flow):
                return self.run(flow)

    def _call(self, effect: Call) -> Any:
        is_over = threading.Event()

        def run_beside() -> None:
            while effect.beside is not None and not is_over.wait(effect.every_seconds):
                self.run(effect.beside())

        thread = threading.Thread(target=run_beside, daemon=True)
        thread.start()
        try:
            return effect.function(**effect.arguments)
        except Exception as error:
            return Raised(error)
        finally:
            is_over.set()
            thread.join()

    def _send(self, effect: Send) -> Answer | Lost:
        try:
            with self._client.stream(**wire.arguments(effect.request)) as response:
                return self._whole(response)
        except httpx.RequestError as error:
            return wire.lost(error)

    def _open(self, effect: Open, scope: _Scope) -> Answer | Lost:
        scope.close_stream()
        silence = wire.timeout(self._limits, self._limits.silence_seconds)
        request = self._client.build_request(**wire.arguments(effect.request), timeout=silence)
        try:
            response = self._client.send(request, stream=True)
            answer = wire.head(response)
            if is_stream(answer):
                scope.hold(response)
                return answer
            try:
                return self._whole(response)
            finally:
                response.close()
        except httpx.RequestError as error:
            return wire.lost(error)

    def _whole(self, response: httpx.Response) -> Answer:
        body = wire.Body(response, self._limits.answer_bytes)
        for piece in response.iter_bytes():
            body.add(piece)
        return body.answer


class SyncSending:
    """A message that is sent when this object is made."""

    def __init__(self, runner: SyncRunner, reader: OneReader, core: TurnCore) -> None:
        self._runner = runner
        self._reader = reader
        self._core = core
        runner.run(core.send())


class _Scope:
    """What a running flow holds: at most one open stream."""

    def __init__(self) -> None:
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] | None = None

    def hold(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = response.iter_bytes()

    def read(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return next(self._chunks, None)
        except httpx.RequestError:
            return None

    def close_stream(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            response.close()
