"""What schemathesis cannot read from the document: a message can make a deleted conversation anew.

Its check `use_after_free` only knows that a POST to `/conversations` can do so. After a message that did, it takes each
answer of the new conversation for one of the deleted one.
"""

import schemathesis
from schemathesis.openapi.checks import UseAfterFree

# Ids of conversations that were deleted, and were not made anew.
DELETED = set()


@schemathesis.hook
def after_call(context, case, response):
    operation = case.operation.definition.raw["operationId"]
    if operation == "delete_conversation":
        if response.status_code == 204:
            DELETED.add(case.path_parameters["id"])
    elif response.status_code == 400:
        pass  # refused before anything was made
    elif operation == "send_message":
        if isinstance(case.body, dict) and "create" in case.body:
            made(case.path_parameters["id"])
    elif operation == "create_conversation":
        made(response.json()["id"] if response.status_code in (200, 201) else None)
    elif operation == "chat":
        made(response.headers.get("x-conversation-id", [None])[0])


@schemathesis.hook
def after_network_error(context, case, request):
    if case.method == "POST":
        made(None)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if isinstance(failure, UseAfterFree) and "/conversations/{id}" in case.path:
        return case.path_parameters["id"] in DELETED
    return True


def made(conversation):
    """Notes that a conversation exists. An answer that names none (`None`) can have made any of them."""
    if conversation is None:
        DELETED.clear()
    else:
        DELETED.discard(conversation)
