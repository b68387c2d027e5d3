#!/bin/bash
# Reads files that loadline wrote with the standard tool (HistogramLogProcessor of HdrHistogram,
# from Maven Central), and shows its percentiles beside loadline's own.
#
#   tests/histogram-files/run.sh [--record]
#
# --record keeps the interval log and what the tool made of it in crates/load/tests/data, where
# the test `histogram_files` compares them with loadline's own percentiles in every `make test`.
# Needs Maven, Java, and loadline in target/debug ($CARGO_TARGET_DIR, or LOADLINE).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
loadline=${LOADLINE:-$target/debug/loadline}
version=2.2.2
cache=$root/build/histogram-files
mkdir -p "$cache"
jar=$cache/HdrHistogram-$version.jar
[ -f "$jar" ] || mvn -q -B dependency:copy "-Dartifact=org.hdrhistogram:HdrHistogram:$version" \
    "-DoutputDirectory=$cache"

python3 -m http.server --bind 127.0.0.1 --directory "$cache" 18091 >/dev/null 2>&1 &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 100); do
    (exec 3<>/dev/tcp/127.0.0.1/18091) 2>/dev/null && break
    sleep 0.1
done
# Poisson arrivals at a slow server: latencies of many sizes. The tool must leave the warm-up out.
"$loadline" load http://127.0.0.1:18091/ --rate 150/s --poisson -d 6s --warm-up 1500ms -c 4 \
    --hlog "$cache/run.hlog" --hgrm "$cache/run.hgrm" --json >"$cache/run.json" || true
java -cp "$jar" org.HdrHistogram.HistogramLogProcessor -i "$cache/run.hlog" \
    -o "$cache/tool" -outputValueUnitRatio 1000000
echo "== HistogramLogProcessor $version"
tail -8 "$cache/tool.hgrm"
echo "== loadline load --hgrm"
tail -8 "$cache/run.hgrm"
if [ "${1:-}" = --record ]; then
    data=$root/crates/load/tests/data
    cp "$cache/run.hlog" "$data/run.hlog"
    cp "$cache/tool.hgrm" "$data/run.tool.hgrm"
fi
