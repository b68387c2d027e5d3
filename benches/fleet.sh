#!/bin/sh
# What `loadline fleet` takes of a fleet of 5,000 workloads with three pods each: time, memory, and CPU.
#
#   benches/fleet.sh [WORKLOADS] [HOURS]
#
# Needs Debian's package prometheus. A real Prometheus over blocks made by promtool, one point every
# five minutes; the first round reads cold blocks. Takes some minutes, most of them to fill it.
set -eu
workloads=${1:-5000}
hours=${2:-3}
loadline=${LOADLINE:-target/release/loadline}
place=$(mktemp -d)
trap 'kill $server 2>/dev/null || true; rm -rf "$place"' EXIT
end=1763800000

echo "filling: $workloads workloads, 3 pods each, $hours h"
awk -v n="$workloads" -v end="$end" -v hours="$hours" '
function series(metric, labels, base, slope,   t) {
    for (t = 0; t <= hours * 3600; t += 300)
        printf "%s{%s} %.10g %d\n", metric, labels, base + slope * t, end - hours * 3600 + t
}
function each(metric, extra, base, slope,   i, p) {
    for (i = 0; i < n; i++) for (p = 0; p < 3; p++)
        series(metric, sprintf("namespace=\"n%d\",pod=\"w%d-7d4b9c6f5d-bb%s7q\"%s", i % 50, i, substr("bcd", p + 1, 1), extra), base, slope)
}
BEGIN {
    c = ",container=\"app\""
    each("container_cpu_cfs_periods_total", c, 0, 10)
    each("container_cpu_cfs_throttled_periods_total", c, 0, 0.2)
    each("container_cpu_usage_seconds_total", c, 0, 0.3)
    each("container_memory_working_set_bytes", c, 3e8, 0)
    each("container_oom_events_total", c, 0, 0)
    each("http_server_requests_seconds_bucket", ",method=\"GET\",uri=\"/a\",status=\"200\",le=\"+Inf\"", 0, 20)
    each("http_server_requests_seconds_bucket", ",method=\"GET\",uri=\"/a\",status=\"200\",le=\"0.1\"", 0, 19)
    each("http_server_requests_seconds_count", ",method=\"GET\",uri=\"/a\",status=\"200\"", 0, 20)
    each("http_server_requests_seconds_count", ",method=\"GET\",uri=\"/b/{id}\",status=\"200\"", 0, 5)
    each("jvm_gc_pause_seconds_sum", ",cause=\"young\"", 0, 0.002)
    each("jvm_memory_max_bytes", ",area=\"heap\",id=\"old\"", 5e8, 0)
    each("jvm_memory_used_bytes", ",area=\"heap\",id=\"old\"", 2e8, 0)
    each("kube_pod_container_info", c ",image=\"registry.example/app:1\"", 1, 0)
    each("kube_pod_container_resource_limits", c ",resource=\"cpu\"", 1, 0)
    each("kube_pod_container_resource_limits", c ",resource=\"memory\"", 1073741824, 0)
    each("kube_pod_container_resource_requests", c ",resource=\"cpu\"", 1, 0)
    each("kube_pod_container_resource_requests", c ",resource=\"memory\"", 1073741824, 0)
    each("kube_pod_container_status_restarts_total", c, 0, 0)
    print "# EOF"
}' >"$place/series"
ls -l "$place/series" | awk '{ printf "series as text: %.0f MB\n", $5 / 1e6 }'
promtool tsdb create-blocks-from openmetrics -q "$place/series" "$place/data" >/dev/null
rm "$place/series"
: >"$place/prometheus.yml"
prometheus --config.file="$place/prometheus.yml" --storage.tsdb.path="$place/data" \
    --storage.tsdb.retention.time=100y --web.listen-address=127.0.0.1:19090 >"$place/log" 2>&1 &
server=$!
until curl -sf http://127.0.0.1:19090/-/ready >/dev/null; do sleep 0.2; done
for round in 1 2 3; do
    /usr/bin/env time -f "round $round: %e s, loadline %U s of CPU, %M KiB at most" \
        "$loadline" fleet --prometheus http://127.0.0.1:19090 --at "$end" --window "${hours}h" \
        --step 5m --json -o "$place/fleet.json"
done
awk -F'"at_stake_per_month"' '{ print "workloads in the answer: " NF - 1 }' "$place/fleet.json"
