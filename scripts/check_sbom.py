"""Checks a list of software against the schema of CycloneDX: check_sbom.py FILE"""

import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

path = pathlib.Path(sys.argv[1])
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text(encoding="utf-8"))
if wrong:
    sys.exit(f"{path} is no list of software: {wrong}")
print(f"{path} is valid")
