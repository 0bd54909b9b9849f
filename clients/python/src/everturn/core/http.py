"""Requests: the credential, repetition, and what an answer means."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import random
from typing import Any, cast
from urllib.parse import quote, urljoin

from ..api import Problem
from ..errors import ApiError, EverturnError
from ..options import Key, Limits
from ..wire.step import Cut, Refused, Stop, Wait, next_step, retry_after_ms
from .effects import Answer, Flow, Lost, Request, Send, Sleep

_FIRST_RETRY_MS = 500
"""The pause before a request is repeated, which doubles with each try."""


class Http:
    """Where gateways are, who is asking, and the limits."""

    def __init__(self, url: str, key: Key | None, limits: Limits, random: Callable[[], float] = random) -> None:
        self.url = url.rstrip("/")
        self.limits = limits
        self.random = random
        self._key = key
        self.renews_key = callable(key)
        """Whether each request gets a key of its own, so that one may follow after another has expired."""

    def send(self, request: Request) -> Flow[Answer]:
        """Sends a request, as often as it may be sent. Raises ``EverturnError``."""
        failures = 0
        while True:
            outcome = yield Send(self.prepared(request))
            failures += 1
            if isinstance(outcome, Answer) and outcome.status < 300:
                return outcome
            step = self._after(request, outcome, failures)
            if isinstance(step, Stop) or failures >= self.limits.attempts:
                raise self.error(outcome)
            yield Sleep(step.ms / 1000)

    def json(self, request: Request) -> Flow[Any]:
        """Sends a request, and returns the JSON of its answer."""
        answer = yield from self.send(request)
        try:
            return json.loads(answer.body) if answer.body else None
        except (ValueError, RecursionError) as error:
            raise EverturnError("unexpected_answer", f"The answer of {self.url} is no JSON: {error}") from error

    def prepared(self, request: Request) -> Request:
        """Returns the request with its credential. It is asked for each time, as a token may be new."""
        key = self._key() if callable(self._key) else self._key
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return Request(
            method=request.method,
            path=request.path,
            query={name: value for name, value in request.query.items() if value is not None},
            json=request.json,
            content=request.content,
            headers={**request.headers, **headers},
        )

    def error(self, outcome: Answer | Lost) -> EverturnError:
        """Returns the error that no answer, or an answer other than the expected one, stands for."""
        if isinstance(outcome, Lost):
            return EverturnError("unreachable", f"No gateway answers at {self.url}: {outcome.error}")
        problem = _problem(outcome)
        if problem is None:
            return EverturnError(
                "unexpected_answer", f"{self.url} answered {outcome.status}, but not as a gateway does."
            )
        retry_after = retry_after_ms(outcome.headers.get("retry-after")) / 1000
        return ApiError(problem, urljoin(f"{self.url}/", problem["type"]), retry_after)

    def docs(self, code: str) -> str:
        """Returns the address of a code's page."""
        return f"{self.url}/docs/errors/{quote(code, safe='')}"

    def _after(self, request: Request, outcome: Answer | Lost, failures: int) -> Wait | Stop:
        if isinstance(outcome, Lost):
            was_taken = outcome.was_sent
            end: Cut | Refused = Cut()
        else:
            was_taken = outcome.status != 429
            end = Refused(outcome.status, outcome.headers.get("retry-after"))
        if was_taken and not request.is_repeatable:
            return Stop("refused")
        if isinstance(end, Refused) and end.status < 400:
            return Stop("refused")
        return next_step(end, failures=failures, retry_ms=_FIRST_RETRY_MS, random=self.random())


def _problem(answer: Answer) -> Problem | None:
    """Returns the problem of an answer (RFC 9457); ``None`` when it has none that is complete."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    texts = ("code", "detail", "type", "title", "request_id")
    is_whole = all(isinstance(value.get(name), str) for name in texts) and isinstance(value.get("status"), int)
    return cast(Problem, value) if is_whole else None


def path(*parts: str) -> str:
    """Joins a path of the API. Whatever stands in a part stays in it."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)
