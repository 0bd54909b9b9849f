#!/usr/bin/env bash
# Usage: tools-folder.sh VERSIONS PIN_FILE...
# Prints the folder of the programs that `make` installs for tests, and makes .tools a link to the folder. The folder lies in
# the user's cache (root's in /var/cache) and is named after the hash of all pinned versions. So every clone with these pins shares one installation.
set -euo pipefail
cd "$(dirname "$0")/.."

versions=$1
shift
hash=$({
    echo "$versions"
    # A virtual environment of Python belongs to one version of Python, and a program to one kind of machine.
    uname -m
    python3 --version
    cat "$@"
} | sha256sum | cut -c1-16)
# Tests of root start some programs as another account, which cannot enter root's home.
if [ "$(id -u)" -eq 0 ]; then home_cache=/var/cache; else home_cache=$HOME/.cache; fi
folder=${XDG_CACHE_HOME:-$home_cache}/everturn/tools-$hash
mkdir -p "$folder/bin"
if [ "$(readlink .tools || true)" != "$folder" ]; then
    # Older clones have a folder here instead of a link. Only `make` ever wrote into it.
    rm -rf .tools
    ln -s "$folder" .tools
fi
echo "$folder"
