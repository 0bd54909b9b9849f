"""Checks the licences of the packages of npm that the lock files name: all of them, also those that only build or test.

Packages of Python are in nothing that a release holds. Those that our client for Python needs are named in its pyproject.toml.
"""

import json
import pathlib
import subprocess
import sys

# What only builds, tests or measures: nobody gets it from us.
ALLOWED = {
    *("0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "ISC", "MIT", "MIT-0"),
    *("MPL-2.0", "Python-2.0", "Unlicense", "WTFPL", "Zlib"),
}
# What a browser gets from the gateway: these must be as free as the crates in the binary.
IN_THE_PAGE = {"gateway/web/package-lock.json": {"marked", "preact", "sugar-high", "temml"}}
FREE = {"Apache-2.0", "ISC", "MIT"}
# Packages whose metadata do not say what their licence is. Tests and measurements run them, and nothing of ours has their code.
NOT_NAMED = {
    *(f"@modelcontextprotocol/server-{name}" for name in ("everything", "filesystem", "memory", "sequential-thinking")),
    "unionfs",
}


def is_allowed(licence: str, allowed: set[str]) -> bool:
    """Tells whether an expression of SPDX without nested parentheses can be met."""
    choices = licence.strip("()").split(" OR ")
    return any(all(part in allowed for part in choice.split(" AND ")) for choice in choices)


def problems(path: str) -> list[str]:
    """Returns what is wrong with the packages of a lock file."""
    packages = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["packages"]
    wrong = []
    for place, package in packages.items():
        name = place.rsplit("node_modules/", 1)[-1]
        if not place.startswith("node_modules/") or package.get("link"):
            continue
        allowed = FREE if name in IN_THE_PAGE.get(path, set()) else ALLOWED
        licence = package.get("license", "that it does not name")
        if not is_allowed(licence, allowed) and name not in NOT_NAMED:
            wrong.append(f"{path}: {name} has the licence {licence}")
    return wrong


if __name__ == "__main__":
    listed = subprocess.run(["git", "ls-files", "*package-lock.json"], check=True, capture_output=True, text=True)
    paths = listed.stdout.split()
    wrong = [problem for path in paths for problem in problems(path)]
    if wrong or not paths:
        sys.exit("\n".join(wrong or ["there are no lock files"]))
    print(f"licences of npm ok in {len(paths)} lock files")
