"""What the agent says, as text that is ready to be printed."""

from __future__ import annotations

from .model import AssistantMessage, State, Thought

_BREAK = "\n\n"
"""Between two steps, and before a text that begins anew."""


class Said:
    """Follows the states of a conversation, and gives out what is new in them.

    All that it has given out, joined, is what the turn's own agent said, step by step, with a blank line between two
    steps. If an LLM call is tried again and says something else, the new text follows after a blank line, too.
    """

    def __init__(self, state: State) -> None:
        self._seen = {item.id for item in state.items if isinstance(item, Thought | AssistantMessage)}
        self._shown = ""
        """What was given out of the text that is open."""
        self._is_first = True

    def more(self, state: State) -> str:
        """Returns what is new."""
        pieces = [self._rest(item.content, is_whole=True) for item in self._new_items(state)]
        for text in state.texts:
            if text.part == "text" and text.parent_tool_call_id is None:
                pieces.append(self._rest(text.text, is_whole=False))
                break
        return "".join(pieces)

    def _new_items(self, state: State) -> list[Thought | AssistantMessage]:
        new: list[Thought | AssistantMessage] = []
        for item in reversed(state.items):
            if isinstance(item, Thought | AssistantMessage):
                if item.id in self._seen:
                    break
                self._seen.add(item.id)
                if item.agent_execution_id is None and item.content.strip():
                    new.append(item)
        return new[::-1]

    def _rest(self, text: str, *, is_whole: bool) -> str:
        """Returns what is not shown yet of a text that grows. ``is_whole``: nothing more of it comes."""
        shown = self._shown
        if shown.startswith(text):  # it was begun anew, and has come as far as before or less
            self._shown = "" if is_whole else shown
            return ""
        self._shown = "" if is_whole else text
        if shown and text.startswith(shown):
            return text[len(shown) :]
        before = "" if self._is_first else _BREAK
        self._is_first = False
        return before + text
