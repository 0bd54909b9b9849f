"""What the hooks drop, and what they do not."""

from pathlib import Path
from types import SimpleNamespace

import hooks
import pytest
import schemathesis
from schemathesis.openapi.checks import UseAfterFree

AGENT = "/api/v1/agent"
ONE = {"id": "talk-1"}
OTHER = {"id": "talk-2"}


@pytest.fixture(scope="module")
def document():
    return schemathesis.openapi.from_path(Path(__file__).parents[5] / "docs/openapi.json")


@pytest.fixture(autouse=True)
def nothing_deleted():
    hooks.DELETED.clear()


@pytest.fixture
def call(document):
    """Makes a request and its answer."""

    def call(method, path, status=200, of=ONE, headers=None, answer=None, **parts):
        parameters = of if "{id}" in path else {}
        case = document[AGENT + path][method].Case(path_parameters=parameters, **parts)
        response = SimpleNamespace(status_code=status, headers=headers or {}, json=lambda: answer)
        hooks.after_call(None, case, response)
        return case

    return call


@pytest.fixture
def lost(document):
    """Makes a request that gets no answer."""

    def lost(method, path):
        hooks.after_network_error(None, document[AGENT + path][method].Case(), None)

    return lost


@pytest.fixture
def is_fault(call):
    """Says whether an answer about a conversation is held to be a fault, when schemathesis says so."""

    def is_fault(path="/conversations/{id}/approvals"):
        failure = UseAfterFree(operation="DELETE", message="", free="", usage="")
        return hooks.filter_failure(None, failure, call("GET", path), None)

    return is_fault


@pytest.fixture
def deleted(call):
    call("DELETE", "/conversations/{id}", 204)


@pytest.mark.parametrize("path", ["/conversations/{id}", "/conversations/{id}/approvals"])
def test_who_answers_for_a_deleted_conversation_is_accused(deleted, is_fault, path):
    assert is_fault(path)


def test_a_message_makes_it_anew(call, deleted, is_fault):
    call("POST", "/conversations/{id}/messages", 202, body={"content": "Hi.", "create": {}})
    assert not is_fault()


def test_a_chat_makes_it_anew(call, deleted, is_fault):
    call("POST", "/chat", headers={"x-conversation-id": ["talk-1"]})
    assert not is_fault()


def test_a_request_without_an_answer_can_have_made_it(lost, deleted, is_fault):
    lost("POST", "/chat")
    assert not is_fault()


def test_a_refused_message_can_have_made_it(call, deleted, is_fault):
    call("POST", "/chat", 429)
    assert not is_fault()


def test_what_makes_another_one_or_none_changes_nothing(call, lost, deleted, is_fault):
    create = {"content": "Hi.", "create": {}}
    call("POST", "/chat", headers={"x-conversation-id": ["talk-2"]})
    call("POST", "/conversations", 201, answer=OTHER)
    call("POST", "/conversations/{id}/messages", 202, of=OTHER, body=create)
    call("POST", "/conversations/{id}/messages", 400, body=create)
    call("POST", "/conversations/{id}/messages", 404, body={"content": "Hi."})
    call("POST", "/chat", 400)
    lost("GET", "/conversations")
    assert is_fault()


def test_what_is_made_anew_can_be_deleted_again(call, deleted, is_fault):
    call("POST", "/conversations", 201, answer=ONE)
    assert not is_fault()
    call("DELETE", "/conversations/{id}", 204)
    assert is_fault()
