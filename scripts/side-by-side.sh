#!/usr/bin/env bash
# Usage: side-by-side.sh WHAT QUIET COMMAND
# Runs two command lines at once: COMMAND on the terminal, and QUIET, which does WHAT, without a word until it fails. Fails
# when either does.
set -uo pipefail

log=$(mktemp)
# In a process group of its own, so that all of it can be ended.
set -m
bash -c "$2" >"$log" 2>&1 &
quiet=$!
set +m
trap 'kill -- "-$quiet" 2>/dev/null; rm -f "$log"' EXIT

bash -c "$3" || exit $?

if kill -0 "$quiet" 2>/dev/null; then
    echo "▸ $1 is not done yet"
fi
if ! wait "$quiet"; then
    cat "$log" >&2
    echo "▸ $1 failed" >&2
    exit 1
fi
