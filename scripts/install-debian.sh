#!/usr/bin/env bash
# Usage: install-debian.sh [release]
# Installs what tests and `make stack` run besides Rust, Go, Node and Python: PostgreSQL 15, PgBouncer, Redis 7, the
# shell of SQLite, Chromium and tmux, from Debian's packages. With `release`, installs musl-gcc instead, which `make release` needs. Does
# nothing when they are there. Starts no service: the stack runs servers of its own, and neither Debian's PostgreSQL cluster
# nor its PgBouncer nor its Redis is left running, now or after the next boot, because of this script.
set -euo pipefail

postgres_min=15

say() { echo "▸ $*"; }

fail() {
    echo "install-debian: $*" >&2
    exit 1
}

# Debian keeps each version's programs in a directory of its own, off PATH.
has_postgres() {
    local postgres version
    for postgres in /usr/lib/postgresql/*/bin/postgres; do
        version=${postgres#/usr/lib/postgresql/}
        version=${version%%/*}
        if [ -x "$postgres" ] && [ "$version" -ge "$postgres_min" ]; then return 0; fi
    done
    return 1
}

has_pgbouncer() { [ -x /usr/sbin/pgbouncer ]; }

has_redis() { [ -x /usr/bin/redis-server ]; }

has_sqlite() { [ -x /usr/bin/sqlite3 ]; }

has_chromium() { [ -x /usr/bin/chromium ]; }

has_tmux() { [ -x /usr/bin/tmux ]; }

has_musl_gcc() { command -v musl-gcc >/dev/null; }

# Sets `missing` to the packages that are needed for $1 and are not there.
look() {
    missing=()
    if [ "$1" = release ]; then
        has_musl_gcc || missing+=(musl-tools)
        return
    fi
    has_postgres || missing+=(postgresql)
    has_pgbouncer || missing+=(pgbouncer)
    has_redis || missing+=(redis-server)
    has_sqlite || missing+=(sqlite3)
    has_chromium || missing+=(chromium)
    has_tmux || missing+=(tmux)
}

case ${1:-tests} in
tests) needed="PostgreSQL $postgres_min or later, PgBouncer, Redis 7, sqlite3, Chromium and tmux" ;;
release) needed="musl-gcc" ;;
*) fail "there is no group $1; without an argument it installs what tests need" ;;
esac
look "${1:-tests}"
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

installs=("${missing[@]}")
by_hand="install $needed (on Debian: apt-get install ${installs[*]}), then run this again"
command -v apt-get >/dev/null || fail "this is no Debian; $by_hand"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "neither root nor sudo without a password; $by_hand"
    as_root=(sudo -n)
fi

# Packages ask this program whether they may start their services; 101 is no. One that is there already stays.
policy=/usr/sbin/policy-rc.d
wrote_policy=
log=$(mktemp)
clean_up() {
    rm -f "$log"
    if [ -n "$wrote_policy" ]; then "${as_root[@]}" rm -f "$policy"; fi
}
trap clean_up EXIT
if [ ! -e "$policy" ]; then
    wrote_policy=1
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi

# RUNLEVEL=1 says the same to packages that look at the run level instead. What it prints is shown only when it fails.
apt() {
    local command=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -o DPkg::Lock::Timeout=300)
    if ! "${command[@]}" "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        fail "apt-get $1 failed; $by_hand"
    fi
}

say "apt-get update"
apt update
say "apt-get install ${installs[*]} (about a minute, once)"
apt install -y --no-install-recommends "${installs[@]}"

# An administrator's own policy may have allowed the start. And not after the next boot, either.
for package in "${installs[@]}"; do
    if command -v service >/dev/null; then "${as_root[@]}" service "$package" stop >/dev/null 2>&1 || true; fi
    if command -v systemctl >/dev/null; then
        "${as_root[@]}" systemctl disable --quiet "$package.service" >/dev/null 2>&1 || true
    fi
    if command -v update-rc.d >/dev/null; then "${as_root[@]}" update-rc.d "$package" disable >/dev/null 2>&1 || true; fi
done

look "${1:-tests}"
[ ${#missing[@]} -eq 0 ] || fail "${missing[*]} is not there, or too old, after its installation; $by_hand"
say "installed ${installs[*]}; no service runs because of this"
