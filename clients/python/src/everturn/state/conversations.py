"""The list of conversations from the frames of its stream. No I/O."""

from __future__ import annotations

from typing import Any, cast

from ..api import ListedConversation


class ConversationList:
    """The conversations of one caller, as the frames of the list's stream tell them (rules of the shared lists)."""

    def __init__(self) -> None:
        self._by_id: dict[str, ListedConversation] = {}

    @property
    def conversations(self) -> list[ListedConversation]:
        """The conversations, the one that was updated last first."""
        return sorted(self._by_id.values(), key=_place, reverse=True)

    def apply(self, data: Any) -> bool:
        """Takes the data of the next frame. True when the list may have changed."""
        if not isinstance(data, dict):
            return False
        match data.get("type"):
            case "list":
                rows = data.get("conversations")
                self._by_id = {}
                for row in rows if isinstance(rows, list) else []:
                    self._put(row)
                return True
            case "conversation_changed":
                return self._put(data.get("conversation"))
            case "conversation_removed":
                return self._by_id.pop(str(data.get("conversation_id")), None) is not None
            case _:
                return False

    def _put(self, row: Any) -> bool:
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            return False
        self._by_id[row["id"]] = cast(ListedConversation, row)
        return True


def _place(conversation: ListedConversation) -> tuple[str, str]:
    updated_at: Any = conversation.get("updated_at")
    return updated_at if isinstance(updated_at, str) else "", conversation["id"]
