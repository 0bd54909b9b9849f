"""The types of the API, which are made of docs/openapi.json, are those of the document as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing
from pathlib import Path

from everturn import Limits, TurnError, api, errors

REPOSITORY = Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "docs" / "openapi.json"
TYPES = Path(api.__file__)
HEADER = '"""The types of the HTTP API, made of docs/openapi.json: see clients/python/README.md, Changing it."""'


def test_the_types_are_those_of_the_document(tmp_path: Path) -> None:
    made = tmp_path / "api.py"
    kinds = ["--output-model-type", "typing.TypedDict", "--target-python-version", "3.11"]
    words = ["--use-schema-description", "--use-field-description", "--disable-timestamp"]
    form = ["--formatters", "builtin", "--custom-file-header", HEADER]
    where = ["--input", str(DOCUMENT), "--input-file-type", "openapi", "--output", str(made)]
    command = [sys.executable, "-m", "datamodel_code_generator", *kinds, *words, *form, *where]
    subprocess.run(command, check=True, capture_output=True)
    if os.environ.get("EVERTURN_UPDATE_OPENAPI"):
        TYPES.write_text(made.read_text("utf-8"), "utf-8")
    assert made.read_text("utf-8") == TYPES.read_text("utf-8"), "EVERTURN_UPDATE_OPENAPI=1 writes it anew"


def test_the_version_is_that_of_everturn() -> None:
    version = json.loads(DOCUMENT.read_text("utf-8"))["info"]["version"]
    assert f'\nversion = "{version}"\n' in (REPOSITORY / "clients" / "python" / "pyproject.toml").read_text("utf-8")


def test_the_client_s_own_codes_are_none_of_the_gateway_s() -> None:
    """A code says where an error comes from."""
    assert not set(typing.get_args(errors.ClientCode)) & set(typing.get_args(api.Code))


def test_a_code_that_is_newer_is_an_error_like_any_other() -> None:
    assert TurnError("from_the_future", "It is new.").code == "from_the_future"


def test_every_limit_has_a_default() -> None:
    assert all(getattr(Limits(), name) > 0 for name in Limits.__dataclass_fields__)
