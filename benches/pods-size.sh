#!/usr/bin/env bash
# Searches the size of one image in a cluster and by podman on the machine that is its node, in turn, with
# the same limits, load and steps.
#
#   benches/pods-size.sh IMAGE URL_PATH RATE OUT [ROUNDS]
#
# The node and podman must have IMAGE: tests/images/jar.sh makes one of a jar, `podman save` and `ctr images
# import` (or `kind load`) bring it to the node. Needs kubectl's cluster of one node and loadline's own image
# (TRIAL_IMAGE) as scripts/test-kubernetes.sh does, root, podman, python3, a built loadline (LOADLINE), and a
# machine that does nothing else: four minutes for each of the 2 searches of a round. Prints the size that
# each search found, and at the end the largest difference of two. FLAGS are loadline's (SLO, warm-up, proof).
set -eu
image=$1 path=$2 rate=$3 out=$4 rounds=${5:-1}
loadline=$(realpath "${LOADLINE:-$(dirname "$0")/../target/release/loadline}")
trial_image=${TRIAL_IMAGE:-localhost/loadline:latest}
flags=${FLAGS:---cpu 1 --jvm c1:-XX:TieredStopAtLevel=1 --slo p90<250ms,errors<1% --warm-up 5s --measure 5s --prove 3 --confirm 1 --min-memory 128Mi --max-memory 512Mi}
space=loadline-size-$$
mkdir -p "$out"
trap 'kubectl delete namespace "$space" --wait=false >/dev/null' EXIT
kubectl create namespace "$space" >/dev/null

# size KIND WHAT...: prints the size in MiB, 0 without one.
size() {
    kind=$1
    shift
    begin=$(date +%s)
    # Exit code 1 is an answer too: not proven. shellcheck disable=SC2086
    "$loadline" size --state "$out/state" --json --accept-noise --image "$image" --rate "$rate/s" \
        --url "http://localhost:8080$path" $flags "$@" >"$out/$kind-$round.json" || [ $? = 1 ]
    python3 - "$out/$kind-$round.json" "$round" "$kind" "$(($(date +%s) - begin))" <<'PY' | tee -a "$out/sizes"
import json, sys
d = json.load(open(sys.argv[1]))
r = d.get("recommendation") or {}
size = (r.get("configuration") or {}).get("memory_bytes", 0) / 2**20
print(sys.argv[2], sys.argv[3], f"{size:.0f}Mi", f"{sys.argv[4]}s", d["result"], flush=True)
PY
}

echo "round kind size seconds result"
: >"$out/sizes"
for round in $(seq "$rounds"); do
    size pods --kubernetes --trial-image "$trial_image" --namespace "$space"
    size podman --engine podman
done
python3 - "$out/sizes" <<'PY'
import sys
sizes = [int(line.split()[2].removesuffix("Mi")) for line in open(sys.argv[1])]
print(f"largest difference: {100 * (max(sizes) / max(min(sizes), 1) - 1):.1f} %")
PY
