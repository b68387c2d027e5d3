#!/bin/sh
# Installs loadline from the files of a release: programs, man pages, completions.
#
#   sh install.sh [--from DIRECTORY_OR_ADDRESS] [--to PREFIX] [--machine x86_64|aarch64]
#   sh install.sh --remove [--to PREFIX]
#
# --from  where SHA256SUMS and the archives lie: a directory (by default the one that this script
#         lies in) or an https:// address
# --to    /usr/local by default
# --machine
#         whose programs; by default this machine's. Another's are not started to see that they do.
#
# Nothing is unpacked whose bytes SHA256SUMS does not name. Who can change the archive at an address
# can change SHA256SUMS there too: compare it with one that came another way.
set -eu

fail() {
    printf 'install: error: %s\n' "$1" >&2
    printf 'hint: %s\n' "$2" >&2
    exit 1
}

from=$(dirname "$0")
to=/usr/local
remove=''
own=$(uname -m)
machine=$own
while [ $# -gt 0 ]; do
    case $1 in
        --from | --to | --machine)
            [ $# -ge 2 ] || fail "$1 needs a value" "the first lines of install.sh say which"
            case $1 in --from) from=$2 ;; --to) to=$2 ;; *) machine=$2 ;; esac
            shift 2
            ;;
        --remove) remove=yes && shift ;;
        *) fail "$1 is no flag of install.sh" 'flags: --from, --to, --machine, --remove' ;;
    esac
done

# What lies below PREFIX, as patterns.
bash=share/bash-completion/completions/loadline
zsh=share/zsh/site-functions/_loadline
fish=share/fish/vendor_completions.d/loadline.fish
if [ -n "$remove" ]; then
    rm -f "$to/bin/loadline" "$to/bin/loadline-launch" "$to/$bash" "$to/$zsh" "$to/$fish" \
        "$to"/share/man/man1/loadline.1 "$to"/share/man/man1/loadline-*.1
    rm -rf "$to/share/doc/loadline"
    echo "removed loadline from $to"
    exit 0
fi

case $(uname -s) in
    Linux) ;;
    *) fail "loadline measures Linux containers, this is $(uname -s)" \
        'run it in the virtual machine of your container engine, as an image' ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# get NAME: that file of the release, into $work.
get() {
    case $from in
        https://*)
            curl -sSfL --proto '=https' --proto-redir '=https' -o "$work/$1" "$from/$1" \
                || fail "cannot fetch $from/$1" 'the address is that of the directory with SHA256SUMS'
            ;;
        *://*) fail "$from is neither a directory nor an https:// address" 'fetch the files, then --from DIRECTORY' ;;
        *)
            cp "$from/$1" "$work/$1" 2>/dev/null \
                || fail "there is no $from/$1" '--from takes the directory with SHA256SUMS and the archives'
            ;;
    esac
}

get SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(loadline-[0-9][0-9A-Za-z.+-]*-$machine\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
case $archive in
    '') fail "SHA256SUMS names no archive for $machine" 'a release has archives for x86_64 and aarch64' ;;
    *[!0-9A-Za-z.+_-]*) fail "SHA256SUMS names several archives for $machine" 'keep one release in a directory' ;;
esac
get "$archive"
grep "  $archive\$" "$work/SHA256SUMS" >"$work/expected"
(cd "$work" && sha256sum --quiet --check expected >&2) \
    || fail "$archive is not what SHA256SUMS names" 'fetch both again'
tar -xzf "$work/$archive" -C "$work"
here=$work/${archive%.tar.gz}

# put MODE FILE PLACE: the place is complete or as it was before.
put() {
    mkdir -p "$to/${3%/*}"
    cp "$2" "$to/$3.new" && chmod "$1" "$to/$3.new" && mv -f "$to/$3.new" "$to/$3"
}

mkdir -p "$to/bin" 2>/dev/null && [ -w "$to/bin" ] \
    || fail "$to cannot be written to" 'as root, or --to "$HOME/.local"'
put 755 "$here/loadline" bin/loadline
put 755 "$here/loadline-launch" bin/loadline-launch
for page in "$here"/man/*.1; do
    put 644 "$page" "share/man/man1/${page##*/}"
done
put 644 "$here/completions/loadline.bash" "$bash"
put 644 "$here/completions/_loadline" "$zsh"
put 644 "$here/completions/loadline.fish" "$fish"
put 644 "$here/LICENSE" share/doc/loadline/LICENSE
put 644 "$here/sbom.cdx.json" share/doc/loadline/sbom.cdx.json
[ "$machine" != "$own" ] || "$to/bin/loadline" --version >/dev/null \
    || fail "$to/bin/loadline does not start" 'is the directory mounted noexec?'
echo "installed ${archive%.tar.gz} in $to"
case :$PATH: in
    *:"$to/bin":*) ;;
    *) [ "$machine" != "$own" ] || echo "next: export PATH=$(cd "$to" && pwd)/bin:\$PATH" ;;
esac
