#!/bin/bash
# Plain java beside loadline-launch: a Spring Boot service under real limits, a cell a line of CSV.
#
#   benches/launcher-spring.sh LAUNCHER JAR CSV SECONDS < CELLS
#
# A cell is a line `JAVA MIB CPU_PERCENT ROUND HOW`; HOW is `plain` or `launch`, and java options
# may follow it: `launch -XX:MaxHeapFreeRatio=70` changes one decision of the launcher. Cells that
# stand in CSV already are skipped, so that a table can be measured in pieces: it stops to begin
# cells after SECONDS (0: never) and exits with 3 when some are left. `benches/launcher-cells.sh`
# prints the cells of the table in the documents.
#
# Start time is from exec to the first 200 of /owners; START seconds (45) are given. Load: wrk, 8 connections, WARM seconds of
# warm-up (5), then MEASURE seconds (4), outside the container's limits but on the same CPUs:
# compare lines of one machine, not machines. Needs root, v1 memory and cpu controllers, wrk, curl.
set -u
launcher=$(realpath "$1") jar=$(realpath "$2") csv=$3 seconds=$4
warm=${WARM:-5} measure=${MEASURE:-4}
work=$(mktemp -d)
memory=/sys/fs/cgroup/memory/loadline-spring-$$ cpu=/sys/fs/cgroup/cpu/loadline-spring-$$
pid=
trap '[ -n "$pid" ] && kill -9 "$pid" 2> /dev/null; sleep 0.2; rmdir "$memory" "$cpu" 2> /dev/null; rm -rf "$work"' EXIT
[ -s "$csv" ] || echo "jdk,mib,cpu_percent,round,how,started,oom_kills,java_oom,start_s,requests_s,p99_ms,errors,ended_under_load,peak_mib" > "$csv"

cell() {
    local java=$1 mib=$2 percent=$3 round=$4 how=$5 words begin
    local started=no start='' rate='' p99='' errors='' ended=no kills peak heap url port
    port=$((20000 + RANDOM % 10000))
    url="http://127.0.0.1:$port/owners?lastName=Davis"
    case $how in
        plain*) read -ra words <<< "$java ${how#plain}" ;;
        launch*) read -ra words <<< "$launcher -- $java ${how#launch}" ;;
    esac
    mkdir "$memory" "$cpu"
    echo $((mib << 20)) > "$memory/memory.limit_in_bytes"
    echo $((percent * 1000)) > "$cpu/cpu.cfs_quota_us"
    begin=$(date +%s%N)
    # shellcheck disable=SC2016
    LOADLINE_LOG=quiet sh -c 'echo $$ > "$0/cgroup.procs"; echo $$ > "$1/cgroup.procs"; shift; exec "$@"' \
        "$memory" "$cpu" "${words[@]}" -jar "$jar" --server.port="$port" > "$work/log" 2>&1 &
    pid=$!
    while kill -0 $pid 2> /dev/null && [ $((($(date +%s%N) - begin) / 1000000000)) -lt "${START:-45}" ]; do
        if curl -sf -m 2 -o /dev/null "$url"; then
            started=yes
            start=$(awk -v n=$(($(date +%s%N) - begin)) 'BEGIN { printf "%.2f", n / 1e9 }')
            break
        fi
        sleep 0.05
    done
    if [ $started = yes ]; then
        wrk -t1 -c8 -d"${warm}s" "$url" > /dev/null 2>&1
        wrk -t1 -c8 -d"${measure}s" --latency "$url" > "$work/wrk" 2>&1
        rate=$(awk '/Requests\/sec/ { printf "%.0f", $2 }' "$work/wrk")
        p99=$(awk '$1 == "99%" { v = $2; f = v ~ /us$/ ? 0.001 : v ~ /ms$/ ? 1 : 1000; printf "%.1f", v * f }' "$work/wrk")
        errors=$(awk '/Non-2xx/ { n += $NF } /Socket errors/ { gsub(",", ""); n += $4 + $6 + $8 + $10 } END { print n + 0 }' "$work/wrk")
        kill -0 $pid 2> /dev/null || ended=yes
    fi
    kills=$(awk '$1 == "oom_kill" { print $2 }' "$memory/memory.oom_control")
    peak=$(($(cat "$memory/memory.max_usage_in_bytes") >> 20))
    # A thrashing JVM does not hear SIGTERM.
    kill -9 $pid 2> /dev/null
    wait $pid 2> /dev/null
    pid=
    heap=$(grep -c 'OutOfMemoryError' "$work/log")
    local version
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$(dirname "$(dirname "$(realpath "$java")")")/release")
    echo "$version,$mib,$percent,$round,$how,$started,$kills,$heap,$start,$rate,$p99,$errors,$ended,$peak" | tee -a "$csv"
    echo 0 > "$memory/memory.force_empty" 2> /dev/null
    sleep 0.1
    rmdir "$memory" "$cpu"
}

begun=$SECONDS
while read -r java mib percent round how; do
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$(dirname "$(dirname "$(realpath "$java")")")/release")
    grep -q "^$version,$mib,$percent,$round,$how," "$csv" && continue
    if [ "$seconds" -gt 0 ] && [ $((SECONDS - begun)) -ge "$seconds" ]; then
        exit 3
    fi
    cell "$java" "$mib" "$percent" "$round" "$how" < /dev/null
done
