"""What several tests need."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from both import blocking
from gateway import Answer, Gateway

from everturn import Everturn
from everturn.core import http, stream


@pytest.fixture(scope="session")
def seed() -> int:
    """A random seed, which a test prints; EVERTURN_SEED runs one again."""
    return int(os.environ["EVERTURN_SEED"])


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Random numbers of the seed."""
    return random.Random(seed)


def pytest_configure() -> None:
    """Chooses a seed, unless one is given."""
    os.environ.setdefault("EVERTURN_SEED", str(random.randrange(2**32)))


def pytest_report_header() -> str:
    """Says which seed runs."""
    return f"EVERTURN_SEED={os.environ['EVERTURN_SEED']}"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """A gateway with the empty conversation ``talk``. Clients come back to it without a long pause."""
    monkeypatch.setattr(http, "_FIRST_RETRY_MS", 1)
    monkeypatch.setattr(stream, "FIRST_RETRY_MS", 1)
    gateway = Gateway()
    gateway.on("GET", "conversations/talk/events", Answer(body={"events": [], "has_more": False}))
    accepted = {"conversation_id": "talk", "message_id": "msg_1", "status": "queued"}
    gateway.on("POST", "conversations/talk/messages", Answer(202, accepted))
    for execution_id in ("exec_1", "exec_2"):
        gateway.on("POST", f"conversations/talk/client-tools/{execution_id}/claim", Answer(body={"is_repeated": False}))
    yield gateway
    gateway.close()


@pytest.fixture(params=["with await", "without await"])
def connect(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[Callable[..., Any]]:
    """Makes a client, of both kinds."""
    clients: list[Any] = []
    loop = asyncio.new_event_loop()

    def connect(**options: Any) -> Any:
        is_async = request.param == "with await"
        client = blocking(gateway.url, loop, **options) if is_async else Everturn(gateway.url, **options)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
