"""Errors. Decide by ``code``: it is stable. The text of an error is a sentence for people."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .api import Code, Problem

ClientCode: TypeAlias = Literal[
    "unreachable",
    "unexpected_answer",
    "frame_too_large",
    "answer_too_large",
    "outbox_full",
    "stream_ended",
    "cancelled",
]
"""What the client itself finds.

- ``unreachable``: no gateway answered, as often as it was tried.
- ``unexpected_answer``: what answered is no gateway, but a proxy or another program.
- ``frame_too_large``, ``answer_too_large``: more bytes than :class:`everturn.Limits` allows.
- ``outbox_full``: too many messages wait to be sent.
- ``stream_ended``: the stream ended before the turn did.
- ``cancelled``: the turn was cancelled.
"""


class EverturnError(Exception):
    """An error of the client, and the base of all others."""

    code: ClientCode | Code | str
    """A stable word: a :data:`ClientCode`, a code of the API, or a code of a turn (docs/errors)."""
    docs: str | None
    """The address of the code's page, where there is one."""

    def __init__(self, code: ClientCode | Code | str, message: str, docs: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.docs = docs

    @property
    def message(self) -> str:
        """The sentence."""
        return str(self.args[0])


class ApiError(EverturnError):
    """The gateway refused a request. The message is the problem's ``detail``."""

    status: int
    """The HTTP status."""
    title: str
    """One line, the same for each occurrence of the code."""
    request_id: str
    """As in the gateway's log."""
    retry_after: float
    """Seconds after which the request may be repeated; 0 when the gateway does not say."""

    def __init__(self, problem: Problem, docs: str, retry_after: float) -> None:
        super().__init__(problem["code"], problem["detail"], docs)
        self.status = problem["status"]
        self.title = problem["title"]
        self.request_id = problem["request_id"]
        self.retry_after = retry_after


class TurnError(EverturnError):
    """A turn ended without an answer. The code is that of its event ``error``, or ``cancelled``."""
