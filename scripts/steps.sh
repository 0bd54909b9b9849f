#!/usr/bin/env bash
# Usage: steps.sh STEP...
# Makes the targets in this order, until one fails. At its end, also after a failure, it prints the time of each step and the
# twenty slowest tests.
set -uo pipefail
cd "$(dirname "$0")/.."

times=target/test-times
rm -rf "$times"
mkdir -p "$times"
triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${triple}_RUNNER=$PWD/scripts/timed-test.sh"

report() {
    echo "▸ seconds of each step"
    awk '{ printf "%7d  %s\n", $1, $2; sum += $1 } END { printf "%7d  in all\n", sum }' "$times/steps"
    echo "▸ seconds of the twenty slowest tests"
    # Lines of Rust's test harness: test NAME ... ok <SECONDSs>
    for log in "$times"/*.log; do
        step=$(basename "$log" .log)
        sed -nE "s/^test (.+) \.\.\. (ok|FAILED) <([0-9.]+)s>\$/\3 \1 ($step)/p" "$log"
        # awk reads every line: a reader that stops early (head) ends sort by SIGPIPE, and with it this script by pipefail.
    done | sort -rn | awk 'NR <= 20 { printf "%7.1f  %s %s\n", $1, $2, $3 }'
}

for step in "$@"; do
    began=$SECONDS
    # Only standard output goes through the file: cargo shows its progress on the terminal.
    "${MAKE:-make}" --no-print-directory "$step" | tee "$times/$step.log"
    status=$?
    echo "$((SECONDS - began)) $step" >>"$times/steps"
    if [ "$status" -ne 0 ]; then
        report
        echo "✗ make $step failed; to repeat only this step: make $step" >&2
        exit "$status"
    fi
done
report
