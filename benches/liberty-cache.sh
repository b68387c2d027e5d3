#!/bin/sh
# Fills the class cache that experiments/jvm-count-liberty.toml maps: one start of the Liberty workload
# on OpenJ9, some requests, a clean stop.
#
#   benches/liberty-cache.sh [JAVA_HOME of an OpenJ9]
set -eu
cd "$(dirname "$0")/.."

home=${1:-$(ls -d /usr/lib/jvm/*openj9* /usr/lib/jvm/*semeru* 2>/dev/null | head -n 1)}
[ -x "$home/bin/java" ] || { echo "no OpenJ9 in '$home': give its directory" >&2; exit 1; }
cache=/var/tmp/loadline-liberty-cache
port=18080
work=$(mktemp -d)
rm -rf "$cache"
mkdir -m 755 "$cache"

# The script gives OpenJ9 a cache of its own unless this variable names one.
export JAVA_HOME="$home" WLP_OUTPUT_DIR="$work" LOG_DIR="$work/logs" VERBOSEGC=false
export OPENJ9_JAVA_OPTIONS="-Xshareclasses:name=liberty,cacheDir=$cache -XX:ShareClassesEnableBCI -Xscmx80m"
build/workloads/liberty/bin/server run loadline -- --http.port=$port >"$work/output" 2>&1 &
server=$!
tries=0
until curl -sf -o "$work/ready" "http://localhost:$port/health/ready"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] && kill -0 $server || { cat "$work/output" >&2; exit 1; }
    sleep 0.5
done
i=0
while [ $i -lt 500 ]; do
    curl -sf "http://localhost:$port/ping" "http://localhost:$port/stations" >"$work/answer"
    i=$((i + 1))
done
kill -TERM $server
wait $server || true
# Whatever account a trial runs under may map it.
chmod a+r "$cache"/*
"$home/bin/java" -Xshareclasses:name=liberty,cacheDir=$cache,readonly,printStats 2>&1 | grep -E 'cache size|# ROMClasses|# AOT Methods|% full' || true
ls -l "$cache"
rm -rf "$work"
