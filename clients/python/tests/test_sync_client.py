"""The client without ``await``, which is made of the one with ``await``, is that of the sources as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from everturn import async_client, client

SOURCE = Path(async_client.__file__)
MADE = Path(client.__file__)
SETTINGS = Path(__file__).parents[1] / "pyproject.toml"

NAMES = {
    r"\basync (?=def |for |with )": "",
    r"\bawait (?=\w)": "",
    r"\b__a(?=enter__|exit__|iter__)": "__",
    r"\bAsyncGenerator\[(.*), None\]": r"Generator[\1, None, None]",
    r"\bAsync(?=Runner|Sending)": "Sync",
    r"\bAsync(?=[A-Z])": "",
    r"\basynchronous\b": "synchronous",
}
"""What is another word without ``await``, as regular expressions."""

SENTENCES = {
    "with ``await``, of which client.py is made:": "without ``await``, made of async_client.py:",
    "for one event loop of asyncio.": "for one thread at a time.",
    "Returns the turn of a message. ``await`` it to send the message; a loop over it sends it, too.": (
        "Sends a message, and returns its turn, which may be read."
    ),
    "A message and its turn. ``await`` sends it, once.": "A message that was sent, and its turn.",
}
"""What documentation says of only one of the clients. Each stands once in the source."""


def without_await(source: str) -> str:
    """Makes the client without ``await``, before its imports are sorted."""
    for said, instead in SENTENCES.items():
        assert source.count(said) == 1, f"{SOURCE.name} does not say once: {said}"
        source = source.replace(said, instead)
    for name, instead in NAMES.items():
        source = re.sub(name, instead, source)
    return source


def ruff(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--config", SETTINGS]
    subprocess.run(command, check=True)


def test_the_client_without_await_is_made_of_the_one_with_it(tmp_path: Path) -> None:
    made = tmp_path / "client.py"
    made.write_text(without_await(SOURCE.read_text("utf-8")), "utf-8")
    ruff("check", "--fix", "--select", "I", made)
    ruff("format", made)
    if os.environ.get("EVERTURN_UPDATE_SYNC_CLIENT"):
        MADE.write_text(made.read_text("utf-8"), "utf-8")
    assert made.read_text("utf-8") == MADE.read_text("utf-8"), "make sync-client writes it anew"
