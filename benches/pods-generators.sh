#!/usr/bin/env bash
# The same service at the same rate with its load from loadline's container in its own pod, over
# localhost, and from two generator pods, over the network of the cluster: p50 and p99 of each start, in
# turns. On a cluster of one node the generators share it. Needs kubectl and a cluster as
# scripts/test-kubernetes.sh does, and python3; RUNS starts of each (default 5), RATE requests a second
# (default 100).
set -eu
cd "$(dirname "$0")/.."
loadline=$(realpath "${LOADLINE:-target/release/loadline}")
trial_image=${TRIAL_IMAGE:-localhost/loadline:latest}
app_image=${APP_IMAGE:-localhost/loadline-probe:1}
space=loadline-bench-$$
place=$(mktemp -d)
trap 'kubectl delete namespace "$space" --wait=false >/dev/null; rm -rf "$place"' EXIT
kubectl create namespace "$space" >/dev/null
one() {
    local name=$1
    shift
    "$loadline" run --kubernetes --trial-image "$trial_image" --image "$app_image" --namespace "$space" \
        --url "http://localhost:8080${APP_PATH:-/}" --slo 'p99<1s' --rate "${RATE:-100}/s" --warm-up 5s --measure 10s \
        --cpu "${CPU:-500m}" --memory "${MEMORY:-200Mi}" --trial-cpu "${TRIAL_CPU:-400m}" --accept-noise \
        --state "$place/$name" "$@" >/dev/null 2>"$place/said" || { cat "$place/said"; exit 1; }
    "$loadline" export last --state "$place/$name" >"$place/$name.$run.json"
    "$loadline" export last --format csv --state "$place/$name" >"$place/$name.$run.csv"
}
for run in $(seq "${RUNS:-5}"); do
    one own
    one generators --generators 2 --share-nodes 2
done
python3 - "$place" <<'PY'
import csv, glob, json, statistics, sys
for name in ("own", "generators"):
    trials = [t for file in sorted(glob.glob(f"{sys.argv[1]}/{name}.*.json")) for t in json.load(open(file))["trials"]]
    loads = [load for t in trials for load in t["evidence"]["load"] if load["phase"] == "measure"]
    lines = [line for file in sorted(glob.glob(f"{sys.argv[1]}/{name}.*.csv")) for line in csv.DictReader(open(file))]
    figures = {of: [float(line[f"{of}_s"]) * 1e3 for line in lines] for of in ("p50", "p99")}
    words = [f"{of} {statistics.median(all):.2f} ms ({min(all):.2f} to {max(all):.2f})" for of, all in figures.items()]
    lag = max(load["send_lag_p99_ns"] for load in loads) / 1e6
    print(f"{name}, {len(trials)} starts: {', '.join(words)}; send lag p99 {lag:.2f} ms at most, {sum(load['saturated'] is not None for load in loads)} saturated")
    parts = [g for load in loads for g in load["load_from"].get("generators", [])]
    if parts:
        print(f"  clocks known to {max(g['offset_error_ns'] for g in parts) / 1e3:.0f} us, apart by {max(abs(g['drift_ns']) for g in parts) / 1e3:.0f} us more after the load")
PY
