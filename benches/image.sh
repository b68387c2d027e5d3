#!/bin/sh
# Searches the size of one service as a jar and as an image, in podman and in docker, in turn.
#
#   benches/image.sh JAR URL_PATH RATE OUT [ROUNDS]
#
# The image is made here by tests/images/jar.sh; no registry is asked, and the image is removed again.
# The plain command runs on the same runtime. Prints the size that each search found. Needs root,
# podman, docker with a daemon (or dockerd, which is then started without a network), a built loadline
# (LOADLINE, default target/release/loadline) and a quiet machine: two minutes for each of the 3
# searches of a round.
# FLAGS are loadline's (SLO, warm-up, proof). Results stay in OUT/state.
set -eu
jar=$(realpath "$1") path=$2 rate=$3 out=$4 rounds=${5:-3}
loadline=$(realpath "${LOADLINE:-target/release/loadline}")
flags=${FLAGS:---cpu 1 --jvm c1:-XX:TieredStopAtLevel=1 --slo p99<250ms,errors<1% --warm-up 2s --measure 4s --prove 3 --min-memory 128Mi --max-memory 512Mi}
name=localhost/loadline-bench:1
mkdir -p "$out"
out=$(realpath "$out")

end() {
    podman rmi --force "$name" >/dev/null 2>&1 || true
    docker rmi --force "$name" >/dev/null 2>&1 || true
    [ -z "${daemon:-}" ] || kill "$daemon" 2>/dev/null || true
}
trap end EXIT

root=$out/root
if ! docker info >/dev/null 2>&1; then
    DOCKER_HOST=unix:///run/loadline-bench.sock
    export DOCKER_HOST
    dockerd --data-root "$out/dockerd" --exec-root "$out/dockerd-run" --pidfile "$out/dockerd.pid" \
        -H "$DOCKER_HOST" --iptables=false --bridge=none >"$out/dockerd.log" 2>&1 &
    daemon=$!
    until docker info >/dev/null 2>&1; do kill -0 "$daemon"; sleep 1; done
fi
"$(dirname "$0")/../tests/images/jar.sh" "$jar" "$out" "$name" podman docker

# size KIND WHAT...: prints the size in MiB, 0 without one.
size() {
    kind=$1
    shift
    # Exit code 1 is an answer too: not proven. shellcheck disable=SC2086
    "$loadline" size --state "$out/state" --json --rate "$rate/s" --url "http://localhost:8080$path" \
        $flags "$@" >"$out/$kind-$round.json" || [ $? = 1 ]
    python3 - "$out/$kind-$round.json" "$round" "$kind" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
r = d.get("recommendation") or {}
size = (r.get("configuration") or {}).get("memory_bytes", 0) / 2**20
print(sys.argv[2], sys.argv[3], f"{size:.0f}Mi", d["result"], flush=True)
PY
}

echo "round kind size result"
round=1
while [ "$round" -le "$rounds" ]; do
    size jar -- "$root/opt/jre/bin/java" -jar "$jar"
    size podman --image "$name" --engine podman
    size docker --image "$name" --engine docker
    round=$((round + 1))
done
