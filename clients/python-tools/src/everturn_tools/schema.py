"""The JSON schema of a tool's input, from the type hints of its function."""

import inspect
import types
import typing
from typing import Any

from .call import Call

_PRIMITIVES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def call_parameter(function: typing.Callable[..., Any]) -> str | None:
    """Returns the name of the parameter that gets the call."""
    hints = typing.get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is Call and name != "return"), None)


def input_schema(function: typing.Callable[..., Any]) -> dict[str, Any]:
    """Returns the schema of the parameters of a function. Everturn refuses an input with further fields.

    Raises TypeError for a type that has no schema here, and for a parameter without a type.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is Call:
            continue
        if name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__} needs a type for its parameter {name!r}, and no * parameters.")
        properties[name] = _schema(hints[name], f"{function.__name__}({name})")
        if parameter.default is parameter.empty:
            required.append(name)
    return {"properties": properties, **({"required": required} if required else {}), "additionalProperties": False}


def _schema(hint: Any, where: str) -> dict[str, Any]:
    if hint in _PRIMITIVES:
        return {"type": _PRIMITIVES[hint]}
    if hint is Any:
        return {}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        text = next((extra for extra in arguments[1:] if isinstance(extra, str)), None)
        return {**_schema(arguments[0], where), **({"description": text} if text else {})}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(argument, where) for argument in arguments]}
    if hint is list or origin is list:
        return {"type": "array", **({"items": _schema(arguments[0], where)} if arguments else {})}
    if hint is dict or origin is dict:
        return {"type": "object"}
    raise TypeError(f"{where} has the type {hint}, which has no schema: use types of JSON, or write @tool(input=…).")
