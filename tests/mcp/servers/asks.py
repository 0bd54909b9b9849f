"""An MCP server whose tools ask the person, on the newest SDK for Python or on an older one: `asks.py FOLDER`.

The tools note each booking in FOLDER/booked. `seat` asks once, and `journey` asks twice.
"""

import sys
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

FOLDER = Path(sys.argv[1])


class Day(BaseModel):
    """The day."""

    day: str = Field(title="The day", min_length=3)
    seats: int = Field(default=1, ge=1, le=8)


class Meal(BaseModel):
    """The meal."""

    bread: bool


def note(text: str) -> str:
    with (FOLDER / "booked").open("a") as booked:
        booked.write(text + "\n")
    return text


def began(name: str) -> None:
    with (FOLDER / "began").open("a") as began:
        began.write(name + "\n")


try:
    from mcp.server import MCPServer as Server
    from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
    from mcp.server.mcpserver.resolve import Elicit, Resolve

    server = Server("asks")

    def ask_day(train: int) -> Elicit[Day]:
        began("day")
        return Elicit(f"Which day for train {train}?", Day)

    def ask_meal(day: Annotated[Day, Resolve(ask_day)]) -> Elicit[Meal]:
        return Elicit(f"Bread on {day.day}?", Meal)

    @server.tool()
    def seat(train: int, day: Annotated[ElicitationResult[Day], Resolve(ask_day)]) -> str:
        """Books a seat."""
        if isinstance(day, AcceptedElicitation):
            return note(f"train {train} on {day.data.day} for {day.data.seats}")
        return f"nothing is booked: {day.action}"

    @server.tool()
    def journey(
        train: int, day: Annotated[Day, Resolve(ask_day)], meal: Annotated[Meal, Resolve(ask_meal)]
    ) -> str:
        """Books a seat with a meal."""
        return note(f"train {train} on {day.day} for {day.seats}, bread {meal.bread}")

except ImportError:
    from mcp.server.fastmcp import Context, FastMCP

    server = FastMCP("asks")

    @server.tool()
    async def seat(train: int, ctx: Context) -> str:
        """Books a seat."""
        began("day")
        day = await ctx.elicit(f"Which day for train {train}?", Day)
        if day.action != "accept":
            return f"nothing is booked: {day.action}"
        return note(f"train {train} on {day.data.day} for {day.data.seats}")

    @server.tool()
    async def journey(train: int, ctx: Context) -> str:
        """Books a seat with a meal."""
        day = await ctx.elicit(f"Which day for train {train}?", Day)
        if day.action != "accept":
            return f"nothing is booked: {day.action}"
        meal = await ctx.elicit(f"Bread on {day.data.day}?", Meal)
        if meal.action != "accept":
            return f"nothing is booked: {meal.action}"
        return note(f"train {train} on {day.data.day} for {day.data.seats}, bread {meal.data.bread}")


if __name__ == "__main__":
    server.run("stdio")
