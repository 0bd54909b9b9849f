#!/usr/bin/env bash
# Usage: deny.sh CARGO_DENY
# Checks licences, sources, bans and advisories of the crates (deny.toml), with the advisories of deploy/supply/advisories.jsonl.
# It asks no network for advisories; crates that are not on this machine are downloaded, as for a build.
set -euo pipefail
cd "$(dirname "$0")/.."

# cargo-deny names the folder of a database after the address that it would fetch it from.
database=target/deny/advisories/advisory-db-3157b0e258782691
snapshot=deploy/supply/advisories.jsonl

rm -rf "$database"
mkdir -p "$database"
python3 scripts/advisories.py unpack "$snapshot" "$database"
newest=$(grep -o '"date": "[0-9-]*"' "$snapshot" | sort | tail -n 1 | cut -d '"' -f 4)
echo "▸ the newest advisory of $snapshot is of $newest (make advisories renews it)"
cargo fetch --locked --quiet
"$1" --offline --locked check --allow no-license-field
python3 scripts/licences.py
