"""Carries out effects with ``await``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

import httpx

from ..core.effects import Answer, Call, Close, Effect, Emit, Flow, Lost, Open, Raised, Read, Send, Sleep, Spawn, Stream
from ..core.stream import is_stream
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
        scope = _Scope()
        try:
            effect = next(flow)
            while True:
                effect = flow.send(await self._do(effect, scope))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()
            await scope.close()

    async def stream(self, flow: Stream[T]) -> AsyncGenerator[T, None]:
        """Runs a flow, and yields what it emits."""
        scope = _Scope()
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
                return await _call(effect)
            case Spawn(flow):
                return scope.spawn(self._beside(flow))

    async def _beside(self, flow: Flow[None]) -> None:
        async with self._slots:
            await self.run(flow)

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


class _Scope:
    """What a running flow holds: at most one open stream, and what it has spawned."""

    def __init__(self) -> None:
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

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

    def spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close_stream(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()

    async def close(self) -> None:
        """Cancels what was spawned and still runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.close_stream()


async def _call(effect: Call) -> Any:
    """Calls a function: one without ``async`` in a thread, so that it does not hold up everything else."""
    try:
        if inspect.iscoroutinefunction(effect.function):
            return await effect.function(**effect.arguments)
        result = await asyncio.to_thread(effect.function, **effect.arguments)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:
        return Raised(error)
