#!/usr/bin/env python3
"""Writes what a binary is made of (SBOM), in the format CycloneDX 1.6.

    sbom.py TARGET NAME_OF_THE_COMMIT    for one target, like x86_64-unknown-linux-musl, on standard output

It lists the crates that are compiled for the target, with those of build scripts and macros, and the packages of npm that are in
the page. It follows from the commit alone: no time, no random number, and nothing of this machine is in it.
"""

import json
import pathlib
import subprocess
import sys
import tomllib
import uuid

ROOT = "everturn-worker"
# Packages of npm whose code is in gateway/web/dist, and so in the binary.
IN_THE_PAGE = ("marked", "preact", "sugar-high", "temml")
# The namespace of the documents' serial numbers.
NAMESPACE = uuid.UUID("5d0f3c0b-6f3e-5b0e-9d0b-6f7a0c6d1a55")

Component = dict[str, object]


def metadata(target: str) -> dict:
    """Returns what cargo knows of the crates that are compiled for a target."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def checksums() -> dict[tuple[str, str], str]:
    """Returns the SHA-256 of each crate's archive, as Cargo.lock has it."""
    packages = tomllib.loads(pathlib.Path("Cargo.lock").read_text(encoding="utf-8"))["package"]
    return {(it["name"], it["version"]): it["checksum"] for it in packages if "checksum" in it}


def reached(nodes: dict[str, dict], root: str) -> dict[str, list[str]]:
    """Returns the crates that the root needs, each with those that it needs itself; not those of tests."""
    found: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        crate = waiting.pop()
        if crate in found:
            continue
        is_used = [it for it in nodes[crate]["deps"] if any(kind["kind"] != "dev" for kind in it["dep_kinds"])]
        found[crate] = sorted({it["pkg"] for it in is_used})
        waiting.extend(found[crate])
    return found


def reference(package: dict) -> str:
    """Returns the package URL of a crate."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def crate(package: dict, hashes: dict[tuple[str, str], str]) -> Component:
    """Returns the component of a crate."""
    component: Component = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        # Some crates still write a choice as a path.
        expression = package["license"].replace("/", " OR ").replace("  ", " ")
        component["licenses"] = [{"expression": expression}]
    elif package["license_file"]:
        component["licenses"] = [{"license": {"name": f"in the file {pathlib.Path(package['license_file']).name}"}}]
    if digest := hashes.get((package["name"], package["version"])):
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return component


def packages_of_the_page() -> list[Component]:
    """Returns the components of the packages of npm in the page."""
    locked = json.loads(pathlib.Path("gateway/web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    components = []
    for name in IN_THE_PAGE:
        package = locked[f"node_modules/{name}"]
        purl = f"pkg:npm/{name}@{package['version']}"
        licence = [{"license": {"id": package["license"]}}]
        of_npm: Component = {"type": "library", "bom-ref": purl, "name": name, "version": package["version"], "purl": purl}
        components.append(of_npm | {"licenses": licence})
    return components


def bom(target: str, commit: str) -> dict:
    """Returns the document."""
    known = metadata(target)
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    root = next(it for it in known["workspace_members"] if packages[it]["name"] == ROOT)
    needs = reached(nodes, root)
    hashes = checksums()
    page = packages_of_the_page()
    crates = [crate(packages[it], hashes) for it in needs if it != root]
    components = sorted(crates + page, key=lambda it: str(it["bom-ref"]))
    binary = crate(packages[root], hashes) | {"type": "application", "name": "everturn"}
    edges = {reference(packages[it]): sorted({reference(packages[other]) for other in others}) for it, others in needs.items()}
    edges[reference(packages[root])] += [str(it["bom-ref"]) for it in page]
    properties = [{"name": "everturn:target", "value": target}, {"name": "everturn:commit", "value": commit}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(NAMESPACE, f"{commit} {target}").urn,
        "version": 1,
        "metadata": {"component": binary, "properties": properties},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": edges[ref]} for ref in sorted(edges)],
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    json.dump(bom(*sys.argv[1:]), sys.stdout, indent=1, ensure_ascii=False)
    print()
