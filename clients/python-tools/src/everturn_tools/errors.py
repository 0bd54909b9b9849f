"""Errors with a meaning for Everturn. The model reads the message of every error of a tool."""

from temporalio.exceptions import ApplicationError

UNKNOWN = "OutcomeUnknown"
"""The type of an activity's failure after which Everturn reports the outcome of a `once` tool as unknown."""


class ToolError(Exception):
    """A failure that the model can act on. The message says what the model should do.

    A call with an effect `read` or `idempotent` is tried again only with `retry=True`, as for a service that is away.
    """

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry


class OutcomeUnknown(Exception):
    """Nobody knows whether the tool had its effect. The model is told so, and a `once` tool is not tried again."""


def as_failure(error: ToolError | OutcomeUnknown) -> ApplicationError:
    """Returns the failure of the activity."""
    if isinstance(error, OutcomeUnknown):
        return ApplicationError(str(error), type=UNKNOWN)
    return ApplicationError(str(error), type="ToolError", non_retryable=not error.retry)
