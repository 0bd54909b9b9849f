"""What must survive the end of the program: messages that were not confirmed, and client tools that had begun."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TypeAlias

Storage: TypeAlias = MutableMapping[str, str]
"""A place for texts. A ``dict`` is one that is gone with the program."""


class FileStorage(MutableMapping[str, str]):
    """Texts in a folder, each in a file of its own, which is replaced at once. One program uses a folder at a time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __getitem__(self, key: str) -> str:
        try:
            stored = json.loads(self._file(key).read_text("utf-8"))
        except FileNotFoundError:
            raise KeyError(key) from None
        return str(stored["text"])

    def __setitem__(self, key: str, text: str) -> None:
        file = self._file(key)
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"key": key, "text": text}), "utf-8")
        new.replace(file)

    def __delitem__(self, key: str) -> None:
        try:
            self._file(key).unlink()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        return iter([str(json.loads(file.read_text("utf-8"))["key"]) for file in files])

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.json"))

    def _file(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
