"""The decorator `@tool`: a function becomes the activity that Everturn calls."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from temporalio import activity

from .call import Call
from .errors import OutcomeUnknown, ToolError, as_failure
from .results import delivered
from .schema import call_parameter, input_schema

Effect = Literal["read", "idempotent", "once"]
Function = TypeVar("Function", bound=Callable[..., Any])

HEARTBEAT_SECONDS = 1.0
"""The pause between heartbeats. A heartbeat shows that the worker lives, and brings a cancel."""

TOOLS: dict[str, "Tool"] = {}
"""Every tool that a decorator has made, by its name."""


class Tool:
    """A tool: its description for the configuration, and its activity."""

    def __init__(self, function: Callable[..., Any], name: str | None, effect: Effect, options: dict[str, Any]) -> None:
        self.function = function
        self.name = name or function.__name__
        self.effect = effect
        self.description = options.get("description") or _summary(function)
        if not self.description:
            raise TypeError(f"{self.name} needs a docstring, because the model decides by the description.")
        self.input = options.get("input") or input_schema(function)
        self.heartbeat_timeout: str = options.get("heartbeat_timeout") or "5s"
        self._call_parameter = call_parameter(function)
        self._signature = inspect.signature(function)

    def activity(self) -> Callable[..., Any]:
        """Returns the activity for a worker of Temporal."""

        async def run(fields: dict[str, Any]) -> Any:
            return await self._run(Call.read(fields))

        return activity.defn(name=self.name)(run)

    async def _run(self, call: Call) -> Any:
        beating = asyncio.create_task(_beat())
        try:
            self._check(call)
            return await delivered(call, await self._result(call))
        except asyncio.CancelledError:
            call.cancelled.set()
            raise
        except (ToolError, OutcomeUnknown) as error:
            raise as_failure(error) from error
        finally:
            beating.cancel()

    def _check(self, call: Call) -> None:
        # `temporal workflow reset` may start the activity again, for another run than the run that claimed the call.
        is_other_run = call.run_id != activity.info().workflow_run_id
        if is_other_run and (self.effect == "once" or call.effect == "once"):
            raise OutcomeUnknown(f"The workflow was reset while {self.name} ran.")

    async def _result(self, call: Call) -> Any:
        # The schema decides about fields without a parameter: here, a schema has allowed these fields.
        given = {name: value for name, value in call.tool_input.items() if name in self._signature.parameters}
        if self._call_parameter:
            given[self._call_parameter] = call
        try:
            bound = self._signature.bind(**given)
        except TypeError as error:
            raise ToolError(f"The input does not fit {self.name}: {error}. Call it with other arguments.") from error
        if inspect.iscoroutinefunction(self.function):
            return await self.function(*bound.args, **bound.kwargs)
        return await asyncio.to_thread(self.function, *bound.args, **bound.kwargs)


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *,
    effect: Effect = "once",
    name: str | None = None,
    description: str | None = None,
    input: dict[str, Any] | None = None,
    heartbeat_timeout: str | None = None,
) -> Callable[[Function], Function]: ...
def tool(function: Any = None, /, *, effect: Effect = "once", name: str | None = None, **options: Any) -> Any:
    """Makes a tool of a function. The function stays as it is.

    `effect` says what a second run does: `read` has no effect, `idempotent` has the same effect, and `once`, the
    default, must not happen. Unless given, `description` is the docstring's first paragraph, and `input` the schema of
    the type hints.
    """

    def register(function: Any) -> Any:
        made = Tool(function, name, effect, options)
        if made.name in TOOLS:
            raise ValueError(f"There are two tools with the name {made.name!r}.")
        TOOLS[made.name] = made
        return function

    return register if function is None else register(function)


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(HEARTBEAT_SECONDS)


def _summary(function: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
