"""Checks the codec in Python with the vectors of the one in Rust: `python test_codec.py`."""

import asyncio
import base64
import json
from pathlib import Path

from temporalio.api.common.v1 import Payload

from codec import CodecError, EverturnCodec

FILE = json.loads((Path(__file__).parent / "../../codec/vectors.json").read_text())


def raw(vector: dict[str, str], name: str) -> bytes:
    return base64.b64decode(vector[name])


def main() -> None:
    codec = EverturnCodec(FILE["ring"])
    for vector in FILE["vectors"]:
        codec.active = vector["key_id"]
        clear = Payload.FromString(raw(vector, "clear"))
        sealed = codec.sealed(clear, vector["tenant"], raw(vector, "random"))
        assert sealed.data == raw(vector, "sealed"), vector
        assert codec.opened(sealed) == clear
        for name in ["encryption-tenant", "encryption-key-id"]:
            other = Payload.FromString(sealed.SerializeToString())
            other.metadata[name] = b"2026-11" if vector["key_id"] == "2026-12" else b"2026-12"
            try:
                codec.opened(other)
            except CodecError:
                continue
            raise AssertionError(f"{name} is bound to the payload")
    clear = Payload(metadata={"encoding": b"json/plain"}, data=b"1")
    [sealed] = asyncio.run(codec.encode([clear]))
    assert asyncio.run(codec.decode([sealed, clear])) == [clear, clear]
    print("the codec reads and writes the vectors")


if __name__ == "__main__":
    main()
