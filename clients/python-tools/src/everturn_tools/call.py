"""A call of a tool, as the tool sees it."""

import dataclasses
import threading
from typing import Any


@dataclasses.dataclass(frozen=True)
class Call:
    """For whom a tool runs, and why. Everturn takes the fields from its store, and never from the model.

    docs/tools/remote.md describes the fields. A tool gets the call in a parameter of the type `Call`.
    """

    tool_name: str
    tool_call_id: str
    execution_id: str
    conversation_id: str
    message_id: str
    idempotency_key: str
    effect: str
    run_id: str
    tenant_id: str = ""
    owner_id: str = ""
    agent: str = ""
    agent_execution_id: str = ""
    depth: int = 0
    attempt: int = 1
    tool_input: dict[str, Any] = dataclasses.field(default_factory=dict)
    cancelled: threading.Event = dataclasses.field(default_factory=threading.Event, compare=False, repr=False)
    """Set after a cancel. A tool without `async` looks here; an `async` tool gets `asyncio.CancelledError`."""

    @classmethod
    def read(cls, fields: dict[str, Any]) -> "Call":
        """Reads the argument of the activity. Fields of a later Everturn are ignored."""
        known = {field.name for field in dataclasses.fields(cls)} - {"cancelled"}
        return cls(**{name: value for name, value in fields.items() if name in known and value is not None})
