"""Makes the client with ``await`` look like the one without, so that each test drives both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from everturn import AsyncEverturn

_PLAIN = (str, bytes, int, dict, list, tuple, type(None))


class Blocking:
    """Stands for an object of the asynchronous client: waits where it would be awaited."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._target, name))

    def __iter__(self) -> Iterator[Any]:
        source = self._target.__aiter__()
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(anext(source))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(source.aclose())

    def _wrap(self, value: Any) -> Any:
        if callable(value):
            return self._method(value)
        if inspect.isawaitable(value):
            return self._wrap(self._loop.run_until_complete(_finish(value)))
        if isinstance(value, list):
            return [self._wrap(one) for one in value]
        is_ours = type(value).__name__.startswith("Async") or inspect.isasyncgen(value)
        return Blocking(value, self._loop) if is_ours else value

    def _method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._wrap(method(*args, **kwargs))


async def _finish(value: Any) -> Any:
    result = await value
    # An awaited turn is itself; wrapped again, it would be awaited again.
    return _Sent(result) if type(result).__name__ == "AsyncTurn" else result


class _Sent:
    """A turn that was awaited."""

    def __init__(self, turn: Any) -> None:
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turn, name)

    def __aiter__(self) -> Any:
        return self._turn.__aiter__()


_Sent.__name__ = "AsyncSent"


def blocking(url: str, loop: asyncio.AbstractEventLoop, **options: Any) -> Blocking:
    """An asynchronous client that can be used without ``await``."""
    return Blocking(AsyncEverturn(url, **options), loop)
