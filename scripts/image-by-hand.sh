#!/usr/bin/env bash
# Usage: image-by-hand.sh [BINARY]
# Does by hand what the last stage of deploy/Dockerfile does, where no container engine runs: puts the stripped binary and
# what distroless/cc has into an empty directory, and starts it there as the image's user, on a read-only root. Shows that
# nothing is missing. BINARY is by default the debug build. Needs root, or sudo without a password, for chroot.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${1:-target/debug/everturn}
# The nonroot user of distroless, and of the chart.
user=65532
# What of glibc and gcc is in distroless/cc; `everturn` may need no other library.
in_image='libc.so.6|libm.so.6|libgcc_s.so.1|libpthread.so.0|libdl.so.2|librt.so.1|libstdc++.so.6|ld-linux-[a-z0-9-]+.so.[0-9]'
# Its Debian release, whose glibc is this.
newest_glibc=2.36

fail() {
    echo "image-by-hand: $*" >&2
    exit 1
}

[ -x "$binary" ] || fail "there is no $binary; run make everturn first"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "neither root nor sudo without a password"
    as_root=(sudo -n)
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/usr/local/bin "$root"/etc/ssl/certs "$root"/etc/everturn "$root"/tmp "$root"/proc

strip -o "$root/usr/local/bin/everturn" "$binary"

# Each line of ldd is `name => path (address)`, or `path (address)` for the loader. The vdso is the kernel's.
while read -r library; do
    name=$(basename "$library")
    [[ $name =~ ^($in_image)$ ]] || fail "$binary needs $name, which distroless/cc does not have"
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done < <(ldd "$root/usr/local/bin/everturn" | grep -o '/[^ ]*')

# None in a static binary.
glibc=$(readelf --version-info "$binary" | sed -nE 's/.*GLIBC_([0-9.]+).*/\1/p' | sort -uV | tail -1)
newest=$(printf '%s\n' "$glibc" "$newest_glibc" | sort -V | tail -1)
[ "$newest" = "$newest_glibc" ] || fail "$binary needs glibc $glibc, and the image has $newest_glibc"

[ -f /etc/ssl/certs/ca-certificates.crt ] || fail "install the package ca-certificates"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo "root:x:0:0:root:/root:/sbin/nologin" >"$root/etc/passwd"
echo "nonroot:x:$user:$user:nonroot:/home/nonroot:/sbin/nologin" >>"$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:%s:\n' "$user" >"$root/etc/group"
# The chart mounts a configuration here.
cp everturn.example.toml "$root/etc/everturn/everturn.toml"

echo "▸ an empty root with everturn ($(du -m "$root/usr/local/bin/everturn" | cut -f1) MB stripped) and:"
(cd "$root" && find . -type f ! -name everturn -printf '    %P\n' | sort)

# In a mount namespace of its own, so that nothing of it is left behind.
inside() {
    echo "▸ everturn $*"
    # shellcheck disable=SC2016 # The inner shell expands these.
    "${as_root[@]}" unshare --mount bash -c '
        set -e
        root=$1 user=$2
        shift 2
        mount --bind "$root" "$root"
        # Every container engine does this. The SDK of a worker panics where there is no /proc.
        mount -t proc proc "$root/proc"
        mount -o remount,bind,ro "$root"
        if touch "$root/tmp/written" 2>/dev/null; then echo "the root is not read-only" >&2; exit 1; fi
        chroot=$(command -v chroot)
        exec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/nonroot EVERTURN_CONFIG=/etc/everturn/everturn.toml \
            OPENAI_API_KEY=none "$chroot" --userspec="$user:$user" --groups= "$root" /usr/local/bin/everturn "$@"
    ' bash "$root" "$user" "$@"
}

inside --version
inside config check
# Starts the runtime, the threads of tools, and the HTTP clients with their certificates.
inside tools list
inside tools call calculate '{"expression":"6 * 7"}'
