#!/usr/bin/env bash
# What a trial as a pod costs beside its application, on a cluster that does nothing else: seconds around
# start, load and stop, of RUNS trials (default 5), and CPU and memory of loadline's own container while
# it samples ten times a second and sends next to nothing, as the kubelet counts them. Needs kubectl and
# a cluster as scripts/test-kubernetes.sh does, and python3; 4 minutes.
set -eu
cd "$(dirname "$0")/.."
loadline=$(realpath "${LOADLINE:-target/release/loadline}")
trial_image=${TRIAL_IMAGE:-localhost/loadline:latest}
app_image=${APP_IMAGE:-localhost/loadline-probe:1}
runs=${RUNS:-5}
space=loadline-bench-$$
place=$(mktemp -d)
trap 'kubectl delete namespace "$space" --wait=false >/dev/null; rm -rf "$place"' EXIT
kubectl create namespace "$space" >/dev/null
run() {
    "$loadline" run --kubernetes --trial-image "$trial_image" --image "$app_image" --namespace "$space" \
        --url http://localhost:8080/ --slo 'p99<10s' --warm-up 0s --cpu 500m --memory 200Mi \
        --accept-noise --state "$place/state" "$@" >/dev/null 2>"$place/said" || { cat "$place/said"; exit 1; }
}
run --rate 50/s --duration 5s --repeats $((runs + 1))
"$loadline" export last --state "$place/state" >"$place/result.json"
run --rate 1/s --duration 60s &
sleep 25
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
summary() { kubectl get --raw "/api/v1/nodes/$node/proxy/stats/summary" >"$place/summary.$1"; }
summary 1
sleep 30
summary 2
wait
python3 - "$place" "$space" <<'PY'
import datetime, json, statistics, sys
place, space = sys.argv[1:]
result = json.load(open(f"{place}/result.json"))
trials = sorted(result["trials"], key=lambda t: t["started_at_unix_ms"])
begun = [t["started_at_unix_ms"] / 1e3 for t in trials]
own_work = ("start", "measure", "stop")
inside = [
    sum(p["end_ns"] - p["start_ns"] for p in t["evidence"]["phases"] if p["phase"] in own_work) / 1e9
    for t in trials
]
# From the begin of one trial to that of the next.
around = [after - before - within for before, after, within in zip(begun, begun[1:], inside)]
print(f"around {len(around)} trials: median {statistics.median(around):.2f} s, {min(around):.2f} to {max(around):.2f} s")
def own(n):
    for pod in json.load(open(f"{place}/summary.{n}"))["pods"]:
        if pod["podRef"]["namespace"] == space:
            for c in pod["containers"]:
                if c["name"] == "trial-part":
                    return c
    raise SystemExit("the kubelet had no figures of the container yet: run it again")
a, b = own(1), own(2)
at = lambda c: datetime.datetime.fromisoformat(c["cpu"]["time"].replace("Z", "+00:00")).timestamp()
seconds = at(b) - at(a)
cpu = (b["cpu"]["usageCoreNanoSeconds"] - a["cpu"]["usageCoreNanoSeconds"]) / 1e9
print(f"its own container over {seconds:.0f} s: {100 * cpu / seconds:.2f} % of a core, {b['memory']['rssBytes'] / 2**20:.1f} MiB resident, {b['memory']['workingSetBytes'] / 2**20:.1f} MiB in use")
PY
