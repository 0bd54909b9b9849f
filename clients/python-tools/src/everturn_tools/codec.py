"""The codec of Everturn for workers in Python: what goes through Temporal is encrypted.

It is the same as `codec/` of Everturn in Rust, and reads the same vectors (`codec/vectors.json`). docs/operate/codec.md
describes the format.
"""

import base64
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec

PURPOSE = b"everturn/codec/1"
VERSION, SALT, NONCE = 1, 16, 12


class CodecError(Exception):
    """A payload that cannot be read. Temporal tries again what fails with it."""


def tenant() -> str:
    """The label of the tenant that the running activity works for; empty: the installation."""
    if not activity.in_activity():
        return ""
    return activity.info().priority.fairness_key or ""


class EverturnCodec(PayloadCodec):
    """Encrypts with the first key of a ring, and decrypts with any of them."""

    def __init__(self, ring: str) -> None:
        lines = (line.strip() for line in ring.replace(",", "\n").splitlines())
        pairs = (line.split(":", 1) for line in lines if line and not line.startswith("#"))
        self.keys = {key_id: base64.b64decode(secret, validate=True) for key_id, secret in pairs}
        if not self.keys or any(len(key) != 32 for key in self.keys.values()):
            raise ValueError("a ring has a key a line, <id>:<32 bytes in Base64>")
        self.active = next(iter(self.keys))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypts payloads for the tenant of the running activity."""
        return [self.sealed(payload, tenant(), os.urandom(SALT + NONCE)) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypts payloads. A payload in the clear stays as it is."""
        return [self.opened(payload) for payload in payloads]

    def sealed(self, payload: Payload, label: str, random: bytes) -> Payload:
        """Encrypts a payload for a tenant, with `random` as salt and nonce."""
        key, bound = self.derived(self.active, label, random[:SALT])
        data = bytes([VERSION]) + random + key.encrypt(random[SALT:], payload.SerializeToString(), bound)
        metadata = {"encoding": b"binary/encrypted", "encryption-key-id": self.active.encode()}
        if label:
            metadata["encryption-tenant"] = label.encode()
        return Payload(metadata=metadata, data=data)

    def opened(self, payload: Payload) -> Payload:
        """Decrypts a payload. Raises CodecError for a payload that cannot be read."""
        if payload.metadata.get("encoding") != b"binary/encrypted":
            return payload
        key_id = payload.metadata.get("encryption-key-id", b"").decode(errors="replace")
        if key_id not in self.keys:
            raise CodecError(f"the ring has no key {key_id!r}")
        data, label = payload.data, payload.metadata.get("encryption-tenant", b"").decode(errors="replace")
        if len(data) <= SALT + NONCE or data[0] != VERSION:
            raise CodecError("a payload has not the form of an encrypted one")
        salt, nonce, sealed = data[1 : 1 + SALT], data[1 + SALT : 1 + SALT + NONCE], data[1 + SALT + NONCE :]
        key, bound = self.derived(key_id, label, salt)
        try:
            return Payload.FromString(key.decrypt(nonce, sealed, bound))
        except InvalidTag:
            raise CodecError(f"a payload was changed, or key {key_id!r} is another one") from None

    def derived(self, key_id: str, label: str, salt: bytes) -> tuple[AESGCM, bytes]:
        """The key of one payload, and what is bound to it."""
        key = HKDF(SHA256(), 32, salt, PURPOSE + b"\0" + label.encode()).derive(self.keys[key_id])
        return AESGCM(key), b"\0".join([PURPOSE, key_id.encode(), label.encode()])


def data_converter() -> DataConverter:
    """The converter for `Client.connect`. It encrypts when EVERTURN_CODEC_KEYS has the ring of Everturn."""
    ring = os.environ.get("EVERTURN_CODEC_KEYS")
    if not ring:
        return DataConverter.default
    return DataConverter(
        payload_codec=EverturnCodec(ring),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
