#!/usr/bin/env bash
# Builds the binary of the commit before this one into target/previous, for the test in which two builds share one queue
# (tests/tests/e2e/verify/two_builds.rs). The target directory is shared, so that what the project depends on is built once. The
# crates of the project take turns there, so this comes before the build of this commit.
set -euo pipefail
cd "$(dirname "$0")/.."

place=target/previous
if ! commit=$(git rev-parse --verify --quiet 'HEAD~1^{commit}'); then
    # A copy without history has only this build.
    echo "▸ there is no commit before this one here: the test of two builds gets this one twice"
    commit=none
fi
if [ "$(cat "$place/commit" 2>/dev/null)" = "$commit" ] && [ -x "$place/everturn" ]; then
    exit 0
fi
mkdir -p "$place"
rm -f "$place/commit" "$place/everturn"
if [ "$commit" = none ]; then
    cargo build --quiet --workspace --bin everturn --locked
    cp target/debug/everturn "$place/everturn"
else
    echo "▸ the binary of the commit before (${commit:0:7}), for the test of two builds"
    source=target/previous-source
    rm -rf "$source"
    mkdir -p "$source"
    trap 'rm -rf "$source"' EXIT
    # Cargo compares times: with those of the commit (without --touch), these sources would be older than what is built, and
    # the binary of this commit would be taken for that of the one before.
    git archive "$commit" | tar -x --touch -C "$source"
    here=$PWD
    (cd "$source" && CARGO_TARGET_DIR="$here/target" cargo build --quiet --workspace --bin everturn --locked)
    if ! grep -qF "$source" target/debug/everturn; then
        echo "✗ target/debug/everturn was not built from $source: remove target/debug, and run this again" >&2
        exit 1
    fi
    mv target/debug/everturn "$place/everturn"
fi
echo "$commit" >"$place/commit"
