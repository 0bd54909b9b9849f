"""The codec in Python, with the vectors of the codec in Rust."""

import asyncio
import base64
import json
import unittest
from pathlib import Path

from temporalio.api.common.v1 import Payload

from everturn_tools.codec import CodecError, EverturnCodec

FILE = json.loads((Path(__file__).parent / "../../../codec/vectors.json").read_text())


def raw(vector: dict[str, str], name: str) -> bytes:
    return base64.b64decode(vector[name])


class TestCodec(unittest.TestCase):
    def test_the_vectors(self) -> None:
        codec = EverturnCodec(FILE["ring"])
        self.assertTrue(FILE["vectors"])
        for vector in FILE["vectors"]:
            codec.active = vector["key_id"]
            clear = Payload.FromString(raw(vector, "clear"))
            sealed = codec.sealed(clear, vector["tenant"], raw(vector, "random"))
            self.assertEqual(sealed.data, raw(vector, "sealed"), vector)
            self.assertEqual(codec.opened(sealed), clear)
            for name in ["encryption-tenant", "encryption-key-id"]:
                other = Payload.FromString(sealed.SerializeToString())
                other.metadata[name] = b"2026-11" if vector["key_id"] == "2026-12" else b"2026-12"
                with self.assertRaises(CodecError, msg=f"{name} is bound to the payload"):
                    codec.opened(other)

    def test_clear_payloads_stay(self) -> None:
        codec = EverturnCodec(FILE["ring"])
        clear = Payload(metadata={"encoding": b"json/plain"}, data=b"1")
        [sealed] = asyncio.run(codec.encode([clear]))
        self.assertEqual(asyncio.run(codec.decode([sealed, clear])), [clear, clear])
