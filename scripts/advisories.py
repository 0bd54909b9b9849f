"""Advisories of RustSec as one line each, so that they can be checked in and read as a difference.

    advisories.py pack CHECKOUT SNAPSHOT    from a checkout of the advisory database to the snapshot
    advisories.py unpack SNAPSHOT FOLDER    from the snapshot to a database that cargo-deny reads

A line is JSON and holds what decides whether a version of a crate is concerned, and the title. Withdrawn advisories are left
out. The order follows from the ids, so a renewed snapshot differs in what is new.
"""

import json
import pathlib
import subprocess
import sys
import tomllib

# What is kept of an advisory.
FIELDS = ("id", "package", "date", "informational")
FENCE = "```"


def parts(text: str) -> tuple[dict, str]:
    """Returns the metadata and the title of an advisory's file."""
    _, front, rest = text.split(FENCE, 2)
    titles = (line.removeprefix("# ") for line in rest.splitlines() if line.startswith("# "))
    return tomllib.loads(front.removeprefix("toml")), next(titles).strip()


def packed(text: str) -> dict | None:
    """Returns what is kept of an advisory's file; None when it was withdrawn."""
    metadata, title = parts(text)
    advisory = metadata["advisory"]
    if "withdrawn" in advisory:
        return None
    kept = {name: advisory[name] for name in FIELDS if name in advisory}
    kept["date"] = str(kept["date"])
    kept["title"] = title
    versions = metadata.get("versions", {})
    kept["patched"] = versions.get("patched", [])
    kept["unaffected"] = versions.get("unaffected", [])
    return kept


def pack(checkout: pathlib.Path, snapshot: pathlib.Path) -> None:
    """Writes the snapshot."""
    files = sorted(checkout.glob("crates/*/RUSTSEC-*.md"), key=lambda path: (path.stem, path.parent.name))
    advisories = [kept for path in files if (kept := packed(path.read_text(encoding="utf-8")))]
    if not advisories:
        sys.exit(f"{checkout} is no checkout of the advisory database: it has no crates/*/RUSTSEC-*.md")
    lines = (json.dumps(advisory, ensure_ascii=False) for advisory in advisories)
    snapshot.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"{len(advisories)} advisories in {snapshot}")


def unpacked(advisory: dict) -> str:
    """Returns an advisory's file."""
    named = ((name, advisory[name]) for name in FIELDS if name in advisory)
    front = "".join(f"{name} = {json.dumps(value)}\n" for name, value in named)
    versions = "".join(f"{name} = {json.dumps(advisory[name])}\n" for name in ("patched", "unaffected"))
    title = advisory["title"]
    return f"{FENCE}toml\n[advisory]\n{front}\n[versions]\n{versions}{FENCE}\n\n# {title}\n\n{title}\n"


def unpack(snapshot: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes a repository with the files of all advisories."""
    for line in snapshot.read_text(encoding="utf-8").splitlines():
        advisory = json.loads(line)
        path = folder / "crates" / advisory["package"] / f"{advisory['id']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(unpacked(advisory), encoding="utf-8")
    identity = ["-c", "user.name=everturn", "-c", "user.email=everturn@localhost"]
    for command in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "The snapshot"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pack", checkout, snapshot]:
            pack(pathlib.Path(checkout), pathlib.Path(snapshot))
        case ["unpack", snapshot, folder]:
            unpack(pathlib.Path(snapshot), pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
