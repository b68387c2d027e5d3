#!/bin/sh
# What `loadline verify` finds of the bundled service, on a machine with nothing else to do: a release
# that is as it was (A/A), and one that does the work of each request AGAIN times more. Needs root and
# `make workloads`. 20 starts for the baseline (10 min), then RUNS of each (default 5) of 3 to 20 starts
# of half a minute.
set -eu
cd "$(dirname "$0")/.."
loadline=${LOADLINE:-target/release/loadline}
jar=$PWD/build/workloads/spring-web.jar
again=${AGAIN:-1}
runs=${RUNS:-5}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/k8s"
cat >"$place/k8s/deploy.yaml" <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: spring-web}
spec:
  template:
    spec:
      containers:
      - name: spring-web
        image: spring-web:1
        env: [{name: JAVA_TOOL_OPTIONS, value: "-XX:TieredStopAtLevel=1"}]
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: "1", memory: 232Mi}, limits: {cpu: "1", memory: 232Mi}}
        readinessProbe: {httpGet: {path: /health, port: http}}
YAML
# At 100/s most of the CPU is that of compiling, which differs from start to start by more than a rise.
"$loadline" init "$place" --rate 300/s --url '/owners?lastName=Da' --force -- java -jar "$jar"
cd "$place"
printf 'warm-up = "10s"\nmeasure = "10s"\n' >>loadline.toml
"$loadline" verify --state state --wait --accept
for run in $(seq "$runs"); do
    "$loadline" verify --state state --wait --json >"same.$run" 2>/dev/null || true
done
sed -i "s|\.jar\"\]|.jar\", \"--workload.again=$again\"]|" loadline.toml
for run in $(seq "$runs"); do
    "$loadline" verify --state state --wait --json >"more.$run" 2>/dev/null || true
done
python3 - <<'PY'
import glob, json
for name in ("same", "more"):
    for path in sorted(glob.glob(name + ".*")):
        try:
            seen = json.load(open(path))
        except ValueError:
            print(f"{path}: nothing was measured")
            continue
        cpu, memory = seen["cpu_per_request_s"], seen["memory_bytes"]
        show = lambda c: "-" if c["ratio"] is None else f"{c['ratio']:.3f} ({c['interval'][0]:.3f} to {c['interval'][1]:.3f})"
        print(f"{path}: {seen['answer']:12} {seen['starts']:2} starts, CPU a request {show(cpu)}, memory {show(memory)}")
PY
