#!/usr/bin/env bash
# Usage: timed-test.sh PROGRAM [ARGUMENT...]
# Runs a test program of cargo, so that the time of each test stands in its line: "test name ... ok <0.123s>". Rust's test
# harness has this option only as an unstable one, which the variable allows for this program alone.
case $1 in
*/deps/*) RUSTC_BOOTSTRAP=1 exec "$@" -Z unstable-options --report-time ;;
*) exec "$@" ;;
esac
