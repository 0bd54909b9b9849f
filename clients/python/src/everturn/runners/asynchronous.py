"""Carries out effects with ``await``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import Any, Self, TypeVar

import httpx

from ..core.effects import Answer, Call, Close, Effect, Emit, Flow, Lost, Open, Raised, Read, Send, Sleep, Spawn, Stream
from ..core.one_reader import OneReader
from ..core.session import TurnCore
from ..core.stream import is_stream
from ..core.tools import ClientTools
from ..options import Limits
from . import wire

T = TypeVar("T")


class AsyncRunner:
    """Runs flows. Flows that they spawn run beside them, as many at once as ``limits.parallel_tools``."""

    def __init__(self, url: str, limits: Limits, transport: httpx.AsyncBaseTransport | None) -> None:
        self._limits = limits
        self._client = httpx.AsyncClient(
            base_url=url, timeout=wire.timeout(limits, limits.request_seconds), transport=transport
        )
        self._slots = asyncio.Semaphore(limits.parallel_tools)

    async def run(self, flow: Flow[T]) -> T:
        """Runs a flow to its end, and returns its value."""
        scope = _Scope(self._limits)
        try:
            return await self._run(flow, scope)
        finally:
            await scope.close()

    async def _run(self, flow: Flow[T], scope: _Scope) -> T:
        try:
            effect = next(flow)
            while True:
                effect = flow.send(await self._do(effect, scope))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()

    async def stream(self, flow: Stream[T]) -> AsyncGenerator[T, None]:
        """Runs a flow, and yields what it emits."""
        scope = _Scope(self._limits)
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = next(flow)
                else:
                    effect = flow.send(await self._do(effect, scope))
        except StopIteration:
            return
        finally:
            flow.close()
            await scope.close()

    def check(self, tools: ClientTools | None) -> None:
        """Accepts every tool: this runner calls functions with ``async`` and without."""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def _do(self, effect: Effect, scope: _Scope) -> Any:
        match effect:
            case Send():
                return await self._send(effect)
            case Open():
                return await self._open(effect, scope)
            case Read():
                return await scope.read()
            case Close():
                return await scope.close_stream()
            case Sleep(seconds):
                return await asyncio.sleep(seconds)
            case Call():
                return await scope.call(effect, self)
            case Spawn(flow):
                return scope.spawn(flow, self)

    async def run_beside(self, flow: Flow[None], scope: _Scope) -> None:
        """Runs a flow that another one has spawned, once there is a place for it."""
        async with self._slots:
            if not scope.is_closed:
                await self._run(flow, scope)

    async def _send(self, effect: Send) -> Answer | Lost:
        try:
            async with self._client.stream(**wire.arguments(effect.request)) as response:
                return await self._whole(response)
        except httpx.RequestError as error:
            return wire.lost(error)

    async def _open(self, effect: Open, scope: _Scope) -> Answer | Lost:
        await scope.close_stream()
        silence = wire.timeout(self._limits, self._limits.silence_seconds)
        request = self._client.build_request(**wire.arguments(effect.request), timeout=silence)
        try:
            response = await self._client.send(request, stream=True)
            answer = wire.head(response)
            if is_stream(answer):
                scope.hold(response)
                return answer
            try:
                return await self._whole(response)
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            return wire.lost(error)

    async def _whole(self, response: httpx.Response) -> Answer:
        body = wire.Body(response, self._limits.answer_bytes)
        async for piece in response.aiter_bytes():
            body.add(piece)
        return body.answer


class AsyncSending:
    """A message that ``await`` sends, once."""

    def __init__(self, runner: AsyncRunner, reader: OneReader, core: TurnCore) -> None:
        self._runner = runner
        self._reader = reader
        self._core = core

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._sent().__await__()

    async def _sent(self) -> Self:
        await self._runner.run(self._core.send())
        return self


class _Scope:
    """What a running flow holds: at most one open stream, and what it has spawned."""

    def __init__(self, limits: Limits) -> None:
        self.is_closed = False
        self._limits = limits
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._spawned: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[Any]] = set()

    def hold(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = response.aiter_bytes()

    async def read(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return await anext(self._chunks, None)
        except httpx.RequestError:
            return None

    def spawn(self, flow: Flow[None], runner: AsyncRunner) -> None:
        _keep(self._spawned, asyncio.create_task(runner.run_beside(flow, self)))

    async def call(self, effect: Call, runner: AsyncRunner) -> Any:
        call = _keep(self._calls, asyncio.create_task(_call(effect)))
        while effect.beside is not None:
            await asyncio.wait({call}, timeout=effect.every_seconds)
            if call.done():
                break
            await runner.run(effect.beside())
        return await call

    async def close_stream(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()

    async def close(self) -> None:
        """Closes the stream, and cancels the functions that run. Results that are on their way are still sent."""
        self.is_closed = True
        await self.close_stream()
        for call in list(self._calls):
            call.cancel()
        if self._spawned:
            _, late = await asyncio.wait(self._spawned, timeout=self._limits.request_seconds)
            for task in late:
                task.cancel()


def _keep(tasks: set[asyncio.Task[T]], task: asyncio.Task[T]) -> asyncio.Task[T]:
    """Keeps a task until it is done: asyncio itself may forget it."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


async def _call(effect: Call) -> Any:
    """Calls a function: one without ``async`` in a thread, so that it does not hold up everything else."""
    try:
        if inspect.iscoroutinefunction(effect.function):
            return await effect.function(**effect.arguments)
        result = await asyncio.to_thread(effect.function, **effect.arguments)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:
        return Raised(error)
