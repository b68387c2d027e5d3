#!/bin/sh
# zig as a C compiler for another target: zig-cc.sh ZIG TARGET ARGUMENT...
# Build scripts of crates name the target as Rust does, which zig does not know.
set -eu
zig=$1
target=$2
shift 2
for word; do
    shift
    case $word in
        --target=*) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec "$zig" cc -target "$target" -fno-sanitize=undefined "$@"
