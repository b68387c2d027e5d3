#!/bin/bash
# One cell of the table "plain java beside loadline-launch": a Spring Boot service under real limits.
#
#   benches/launcher-spring.sh LAUNCHER JAR JAVA MEMORY_MIB CPU_PERCENT
#
# Prints two lines, `plain` and `launch`:
#   java version, MiB, CPU %, how, started?, OOM kills, start time (s), requests/s, errors, peak MiB
# Start time is from exec to the first 200 of /owners. Load: wrk, 8 connections, 5 s after 3 s of
# warm-up, outside the container's limits but on the same CPUs; compare lines, not machines.
# Needs root, v1 memory and cpu controllers, wrk, curl.
set -u
launcher=$1 jar=$2 java=$3 mib=$4 percent=$5
port=$((20000 + RANDOM % 10000))
url="http://127.0.0.1:$port/owners?lastName=Davis"
version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$(dirname "$(dirname "$(realpath "$java")")")/release")

cell() {
    local how=$1 group pid begin start=- rate=- errors=- started=no kills peak
    shift
    group=loadline-spring-$$-$how
    mkdir "/sys/fs/cgroup/memory/$group" "/sys/fs/cgroup/cpu/$group"
    echo $((mib << 20)) > "/sys/fs/cgroup/memory/$group/memory.limit_in_bytes"
    echo $((percent * 1000)) > "/sys/fs/cgroup/cpu/$group/cpu.cfs_quota_us"
    begin=$(date +%s%N)
    # shellcheck disable=SC2016
    sh -c 'echo $$ > "/sys/fs/cgroup/memory/$0/cgroup.procs"; echo $$ > "/sys/fs/cgroup/cpu/$0/cgroup.procs"; exec "$@"' \
        "$group" "$@" -jar "$jar" --server.port="$port" > /tmp/loadline-spring-$$.log 2>&1 &
    pid=$!
    while kill -0 $pid 2> /dev/null && [ $((($(date +%s%N) - begin) / 1000000000)) -lt 90 ]; do
        if curl -sf -m 2 -o /dev/null "$url"; then
            started=yes
            start=$(awk -v n=$(($(date +%s%N) - begin)) 'BEGIN { printf "%.1f", n / 1e9 }')
            break
        fi
        sleep 0.05
    done
    if [ $started = yes ]; then
        wrk -t1 -c8 -d3s "$url" > /dev/null 2>&1
        wrk -t1 -c8 -d5s "$url" > /tmp/loadline-wrk-$$.log 2>&1
        rate=$(awk '/Requests\/sec/ { printf "%.0f", $2 }' /tmp/loadline-wrk-$$.log)
        errors=$(awk '/Non-2xx|Socket errors/ { print; n++ } END { if (!n) print 0 }' /tmp/loadline-wrk-$$.log | tr '\n' ' ')
        kill -0 $pid 2> /dev/null || errors="$errors(ended under load)"
    fi
    kills=$(awk '$1 == "oom_kill" { print $2 }' "/sys/fs/cgroup/memory/$group/memory.oom_control")
    peak=$(($(cat "/sys/fs/cgroup/memory/$group/memory.max_usage_in_bytes") >> 20))
    kill $pid 2> /dev/null
    wait $pid 2> /dev/null
    local heap
    heap=$(grep -c 'OutOfMemoryError' /tmp/loadline-spring-$$.log)
    echo "$version,$mib,$percent,$how,$started,$kills,$start,$rate,$errors,$peak,java_oom=$heap"
    sleep 0.2
    echo 0 > "/sys/fs/cgroup/memory/$group/memory.force_empty" 2> /dev/null
    rmdir "/sys/fs/cgroup/memory/$group" "/sys/fs/cgroup/cpu/$group"
    rm -f /tmp/loadline-spring-$$.log /tmp/loadline-wrk-$$.log
}

cell plain "$java"
LOADLINE_LOG=quiet cell launch "$launcher" -- "$java"
