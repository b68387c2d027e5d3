#!/bin/bash
# Where a JVM's memory is, region by region: the constants of crates/sizing/src/regions.
#
#   benches/regions.sh LOADLINE JAR_DIRECTORY SECONDS JAVA... > table.csv
#
# Starts spring-web and ping with each JAVA, collectors and compilers, sends SECONDS of load (wrk, 8
# connections; loopback only), and prints what `loadline footprint` says, a run a line, in MiB.
# Needs wrk, curl and jq.
set -u
loadline=$(realpath "$1") jars=$(realpath "$2") seconds=$3
shift 3
work=$(mktemp -d)
pid=
trap '[ -n "$pid" ] && kill -9 "$pid" 2> /dev/null; rm -rf "$work"' EXIT

run() {
    local java=$1 app=$2 heap=$3 options=$4 port ready path version
    port=$((20000 + RANDOM % 10000))
    case $app in
        spring-web) path='/owners?lastName=Davis' flag=--server.port ;;
        *) path=/ flag=--port ;;
    esac
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$(dirname "$(dirname "$(realpath "$java")")")/release")
    # shellcheck disable=SC2086
    MALLOC_ARENA_MAX=2 "$java" -XX:NativeMemoryTracking=detail -Xmx"$heap" $options \
        -jar "$jars/$app.jar" "$flag=$port" > "$work/log" 2>&1 &
    pid=$!
    for ((ready = 0; ready < 600; ready++)); do
        curl -sf -m 2 -o /dev/null "http://127.0.0.1:$port$path" && break
        sleep 0.1
    done
    wrk -t1 -c8 -d"${seconds}s" "http://127.0.0.1:$port$path" > /dev/null 2>&1
    "$loadline" footprint --json $pid > "$work/json" || return
    jq -r --arg run "$version,$app,$heap,$options" 'def mib: . / 1048576 * 10 | round / 10;
        .regions as $r | [$run, .classes, .threads, ([$r.metaspace, $r.code_cache, $r.thread_stacks, $r.gc_native,
        $r.direct, $r.jit_and_jvm, .compiler_arena_peak, $r.cds, $r.mapped_files, $r.malloc, .native_memory_tracking,
        $r.heap, .live_heap, .resident] | map(mib) | .[])] | map(tostring) | join(",")' "$work/json"
    kill $pid
    wait $pid 2> /dev/null
    pid=
}

echo "jdk,app,heap,options,classes,threads,metaspace,code_cache,stacks,gc,direct,jit_jvm,compiler_peak,cds,files,malloc,nmt,heap_touched,live_heap,resident"
for java in "$@"; do
    run "$java" spring-web 256m "-XX:+UseSerialGC"
    run "$java" spring-web 256m "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    run "$java" spring-web 1g "-XX:+UseG1GC"
    run "$java" ping 64m "-XX:+UseSerialGC"
done
for java in "$@"; do
    run "$java" spring-web 256m "-XX:+UseParallelGC"
    run "$java" spring-web 256m "-XX:+UseG1GC"
    run "$java" ping 64m "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
done
