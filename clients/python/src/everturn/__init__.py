"""Client of Everturn, a durable runtime for LLM agents.

- :class:`Everturn`, and with ``await`` :class:`AsyncEverturn`: send, follow, approve, cancel, resume
- :class:`State` and its items: what is known of a conversation
- :class:`Reducer`: the same from frames that somebody else reads, without I/O
- ``everturn.api``: the types of the HTTP API
- ``everturn.testing``: a gateway in memory, for the tests of a program
"""

from .async_client import AsyncConversation, AsyncEverturn, AsyncTurn
from .client import Conversation, Everturn, Turn
from .core.outbox import Message
from .core.session import Answer, Connection, Update
from .core.tools import ClientTool, ClientTools
from .errors import ApiError, ClientCode, EverturnError, TurnError
from .options import Key, Limits
from .state.conversations import ConversationList
from .state.model import (
    Approval,
    AssistantMessage,
    Citation,
    ClientToolRequest,
    End,
    Item,
    ModelWait,
    Note,
    OpenText,
    PlanStep,
    Question,
    State,
    SubAgent,
    Thought,
    ToolCall,
    ToolProgress,
    ToolResult,
    UserMessage,
    WorkPlan,
    WrittenCall,
)
from .state.reducer import Frame, Reducer, reduce
from .state.select import answer_of_turn, end_of_turn, items_of_agent, items_of_turn, pending_approvals
from .state.timeline import timeline
from .storage import FileStorage, Storage

__all__ = [
    "Answer",
    "ApiError",
    "Approval",
    "AssistantMessage",
    "AsyncConversation",
    "AsyncEverturn",
    "AsyncTurn",
    "Citation",
    "ClientCode",
    "ClientTool",
    "ClientToolRequest",
    "ClientTools",
    "Connection",
    "Conversation",
    "ConversationList",
    "End",
    "Everturn",
    "EverturnError",
    "FileStorage",
    "Frame",
    "Item",
    "Key",
    "Limits",
    "Message",
    "ModelWait",
    "Note",
    "OpenText",
    "PlanStep",
    "Question",
    "Reducer",
    "State",
    "Storage",
    "SubAgent",
    "Thought",
    "ToolCall",
    "ToolProgress",
    "ToolResult",
    "Turn",
    "TurnError",
    "Update",
    "UserMessage",
    "WorkPlan",
    "WrittenCall",
    "answer_of_turn",
    "end_of_turn",
    "items_of_agent",
    "items_of_turn",
    "pending_approvals",
    "reduce",
    "timeline",
]
