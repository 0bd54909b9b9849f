#!/usr/bin/env bash
# Usage: release.sh [--list]
# Builds the archives of a release from the commit that is checked out, and checks each of them: one for glibc and one for
# musl, with SHA256SUMS, in target/archives. Where the commit has no tag of its version, the name has the commit. Works on
# Debian, and as root or with sudo: the check starts everturn in an empty root. --list only prints what an archive holds.
set -euo pipefail
cd "$(dirname "$0")/.."

machine=$(uname -m)
targets=("$machine-unknown-linux-gnu" "$machine-unknown-linux-musl")
# What an archive holds beside the binary and the list of its software: files and folders of the commit.
content=(CHANGELOG.md LICENSE README.md SECURITY.md deploy/systemd everturn.example.toml)
place=target/archives

say() { echo "▸ $*"; }

fail() {
    echo "release: $*" >&2
    exit 1
}

# Builds the binary for target $1. The paths in it say nothing about this machine, as far as the compiler writes them.
build() {
    EVERTURN_COMMIT=$commit \
        RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/source" \
        cargo build --release --locked --package everturn-worker --bin everturn --target "$1"
}

# Writes what the binary of target $1 is made of.
list_software() {
    scripts/sbom.py "$1" "$commit" >"target/$1/release/everturn.cdx.json"
}

# Packs the binary of target $1. The archive follows from the binary and the commit alone: git sorts the files, and gives
# them the commit's time and the user 0.
pack() {
    local name="everturn-$label-$1"
    git -c tar.umask=022 archive --format=tar --prefix="$name/" --add-file="target/$1/release/everturn" \
        --add-file="target/$1/release/everturn.cdx.json" "$commit" "${content[@]}" | gzip --no-name --best >"$place/$name.tar.gz"
}

# Unpacks the archive of target $1 into an empty folder, and starts what is there.
check() {
    local name="everturn-$label-$1" binary shown
    tar -xzf "$place/$name.tar.gz" -C "$unpacked"
    binary="$unpacked/$name/everturn"
    shown=$("$binary" --version)
    [ "$shown" = "everturn $version ($commit)" ] || fail "everturn --version of $1 says: $shown"
    if [[ $1 == *-musl ]] && readelf --program-headers "$binary" | grep -q INTERP; then
        fail "the binary of $1 is not static"
    fi
    grep -q "\"value\": \"$commit\"" "$binary.cdx.json" || fail "the list of software of $1 is not of this commit"
    scripts/image-by-hand.sh "$binary"
}

case ${1:-} in
"") ;;
--list)
    printf '%s\n' everturn everturn.cdx.json "${content[@]}"
    exit 0
    ;;
*) fail "release.sh takes no argument but --list" ;;
esac

[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed; commit them or put them aside"
commit=$(git rev-parse HEAD)
version=$(cargo pkgid --package everturn-worker)
version=${version##*[@#]}
label=$version
if [ -z "$(git tag --points-at HEAD --list "v$version")" ]; then
    label=$version-${commit:0:10}
    say "this commit has no tag v$version: the archives get its number, and are no release"
elif ! grep -qE "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md; then
    fail "CHANGELOG.md has no section '## $version - <date>'; CONTRIBUTING.md says how a release is made"
fi

scripts/install-debian.sh release
rustup target add "${targets[@]}"
rm -rf "$place"
mkdir -p "$place"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
for target in "${targets[@]}"; do
    say "$target (the first time takes a quarter of an hour)"
    build "$target"
    list_software "$target"
    pack "$target"
    check "$target"
done
cd "$place"
sha256sum everturn-*.tar.gz >SHA256SUMS
say "in $place:"
ls -l
