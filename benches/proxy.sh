#!/bin/sh
# How exact loadline's proxy is and what it takes, beside Toxiproxy, on a machine with nothing else to
# do: added latency at 1,000 requests a second (20 ms asked for), CPU for a round trip, a forwarded
# gigabyte and a connection, and the ratios. In turns, A B A B A B, each with SECONDS (20) without and
# SECONDS with the 20 ms: five minutes. Needs root; Toxiproxy is built from the Go module proxy where
# there is a Go compiler, else it is left out.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
cargo build --release --locked -p loadline-proxy --example accuracy
example=${CARGO_TARGET_DIR:-target}/release/examples/accuracy
go=$(command -v go || command -v /usr/local/go/bin/go || true)
if [ -z "$go" ]; then
    echo "no Go compiler: Toxiproxy is left out" >&2
    exec "$example" "$seconds"
fi
scratch=$(mktemp -d)
other=
trap '[ -z "$other" ] || kill "$other"; rm -rf "$scratch"' EXIT
(cd "$scratch" && GOWORK=off GOFLAGS=-modcacherw GOPATH="$scratch/go" GOBIN="$scratch" \
    "$go" install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0)
cat >"$scratch/proxies.json" <<'JSON'
[{"name": "plain", "listen": "127.0.0.1:7011", "upstream": "127.0.0.1:7999", "enabled": true},
 {"name": "late", "listen": "127.0.0.1:7012", "upstream": "127.0.0.1:7999", "enabled": true}]
JSON
LOG_LEVEL=error "$scratch/server" -config "$scratch/proxies.json" -port 7010 >/dev/null &
other=$!
tries=0
until curl -sSf -o /dev/null -H 'Content-Type: application/json' -d \
    '{"type": "latency", "stream": "downstream", "attributes": {"latency": 20, "jitter": 0}}' \
    http://127.0.0.1:7010/proxies/late/toxics 2>"$scratch/curl"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 50 ]; then
        cat "$scratch/curl" >&2
        exit 1
    fi
    sleep 0.2
done
"$example" "$seconds" 7011 7012 "$other" >"$scratch/figures.json"
python3 - "$scratch/figures.json" <<'PY'
import json, sys
both = json.load(open(sys.argv[1]))
for key, mine in both["loadline"].items():
    theirs = both["other"][key]
    ratio = f"{mine / theirs:.2f}" if theirs > 0 else "-"
    print(f"{key:22} loadline {mine:8.3f} toxiproxy {theirs:8.3f} ratio {ratio}")
PY
