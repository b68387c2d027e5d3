#!/bin/sh
# A compiler of this workspace's crates with what a fuzzer counts, as cargo calls a wrapper:
# `rustc.sh RUSTC ARGUMENTS`. Build scripts are programs of their own, which no fuzzer links.
case " $* " in
*" --crate-name build_script_"*) exec "$@" ;;
esac
# Unquoted: several words.
# shellcheck disable=SC2086
exec "$@" $LOADLINE_FUZZ_FLAGS
