#!/usr/bin/env python3
"""Usage: test_programs.py AT_ONCE [ARGUMENT...]

Builds the test programs of the workspace and runs them, AT_ONCE at a time, with these arguments. Many tests wait for a
server or a clock, and cargo would run one program after the other. Leaves out the end-to-end tests, which are steps of
their own. Prints the output of a program when the program has ended. Fails when a program has failed.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

LEFT_OUT = {"e2e"}
ROOT = Path(__file__).parent.parent
RUNNER = ROOT / "scripts" / "timed-test.sh"


def programs():
    """Returns the built test programs, the largest first, each with the folder of its crate: cargo runs a program there."""
    build = ["cargo", "test", "--workspace", "--locked", "--no-run", "--message-format", "json-render-diagnostics"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    found = [
        (message["executable"], os.path.dirname(message["manifest_path"]))
        for message in messages
        if message.get("executable")
        and message["profile"]["test"]
        and message["target"]["name"] not in LEFT_OUT
    ]
    # A large program has many tests, so it should not be the last one.
    return sorted(found, key=lambda program: -os.path.getsize(program[0]))


def run(program, folder, arguments):
    """Runs a program to its end. Returns the exit code and the output."""
    ended = subprocess.run(
        [RUNNER, program, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return ended.returncode, ended.stdout


def main():
    at_once, arguments = int(sys.argv[1]), sys.argv[2:]
    failed = []
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(run, *program, arguments): program[0] for program in programs()}
        for ended in as_completed(running):
            name = os.path.basename(running[ended])
            code, output = ended.result()
            print(f"     Ran {name}\n{output}", flush=True)
            if code != 0:
                failed.append(name)
    if failed:
        sys.exit(f"✗ failed: {', '.join(failed)}")


main()
