#!/usr/bin/env bash
# Usage: mutations.sh [NAME...], or mutations.sh --check
# Shows that the simulation finds deliberate bugs. Each patch in simulation/mutations/ is a bug of the product, and says in its
# first line which rule the bug breaks. The script applies one patch at a time to a copy of the tree, and runs seeds until the
# first violation. Without names, the script tries every patch. SEEDS (10000) is the most seeds of a patch, JOBS the number of
# threads. The copy has the changes of tracked files that are not committed. The exit code is 1 when a bug is not found.
# With --check, the script only checks that each patch names its bug and applies to the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

# A patch of an older tree would test nothing.
if [ "${1:-}" = --check ]; then
    for patch in simulation/mutations/*.patch; do
        head -1 "$patch" | grep -q '^[A-Z].*\. Breaks .*\.$' ||
            { echo "✗ the first line of $patch does not say which bug it is and which rule the bug breaks" >&2 && exit 1; }
        git apply --check "$patch" ||
            { echo "✗ $patch does not apply: make the same bug in the changed code, and write its diff" >&2 && exit 1; }
    done
    exit 0
fi

here=$PWD
seeds=${SEEDS:-10000}
folder=$here/target/mutations
copy=$folder/source
export CARGO_TARGET_DIR=$folder/build
# Each bug is compiled once and runs for seconds, so the large crates of the workspace are not optimised.
unoptimised=()
for crate in gateway store workflows simulation; do
    unoptimised+=(--config "profile.simulate.package.everturn-$crate.opt-level=0")
done
# Nothing is built twice: the dependencies come from the build of `make simulate`.
if [ ! -d "$CARGO_TARGET_DIR" ] && [ -d target/simulate ]; then
    mkdir -p "$CARGO_TARGET_DIR"
    # With the times of the files, which Cargo compares.
    cp -a --reflink=auto target/simulate "$CARGO_TARGET_DIR/simulate"
fi

# The copy stays, so that the next run compiles only what has changed since.
git worktree prune
commit=$(git stash create)
commit=$(git rev-parse "${commit:-HEAD}")
if [ -e "$copy/.git" ]; then
    git -C "$copy" checkout --quiet --force --detach "$commit"
else
    git worktree add --quiet --detach "$copy" "$commit"
fi

# Builds the copy and runs seeds. Returns the exit code of `simulate`, whose stderr is in $folder/errors.
run_seeds() {
    : >"$folder/errors"
    if ! (cd "$copy" && cargo build --quiet --workspace --locked --profile simulate --bin simulate "${unoptimised[@]}") >"$folder/build.log" 2>&1; then
        cat "$folder/build.log" >&2
        return 3
    fi
    "$CARGO_TARGET_DIR/simulate/simulate" --seeds "$1" ${JOBS:+--jobs "$JOBS"} --brief >/dev/null 2>"$folder/errors"
}

names=("$@")
if [ ${#names[@]} = 0 ]; then
    for patch in simulation/mutations/*.patch; do
        name=${patch##*/}
        names+=("${name%.patch}")
    done
fi

# Without a bug, a violation would show nothing.
if ! run_seeds 1000; then
    cat "$folder/errors" >&2
    echo "✗ the tree without a mutation does not build, or has a violation" >&2
    exit 1
fi

missed=()
row='%-40s %7s  %8s  %s\n'
printf "$row" mutation seed seconds violation
for name in "${names[@]}"; do
    patch=$here/simulation/mutations/$name.patch
    git -C "$copy" apply "$patch"
    code=0
    begun=$SECONDS
    run_seeds "$seeds" || code=$?
    took=$((SECONDS - begun))
    found=$(sed -n '/^seed /{s/^seed \([0-9]*\), after [0-9]* steps: /\1 /p;q;}' "$folder/errors")
    case $code in
        0)
            printf "$row" "$name" - "$took" "NOT FOUND in $seeds seeds"
            missed+=("$name")
            ;;
        1) printf "$row" "$name" "${found%% *}" "$took" "${found#* }" ;;
        *)
            printf "$row" "$name" - "$took" "could not run"
            cat "$folder/errors" >&2
            missed+=("$name")
            ;;
    esac
    git -C "$copy" apply --reverse "$patch"
done

if [ ${#missed[@]} != 0 ]; then
    echo "✗ not found: ${missed[*]}" >&2
    exit 1
fi
echo "▸ all ${#names[@]} mutations were found"
