#!/bin/bash
# Where a JVM's memory is, region by region: the constants of crates/sizing/src/regions and of
# crates/sizing/src/openj9/regions.rs.
#
#   benches/regions.sh LOADLINE WORKLOADS SECONDS JAVA_HOME... > table.csv
#
# Starts the workloads with the JVM of each JAVA_HOME, collectors and compilers, sends SECONDS of load
# (wrk, 8 connections; loopback only), and prints what `loadline footprint` says, a run a line, in MiB.
# Needs wrk, curl and jq.
set -u
loadline=$(realpath "$1") workloads=$(realpath "$2") seconds=$3
shift 3
work=$(mktemp -d)
pid=
trap '[ -n "$pid" ] && kill -9 "$pid" 2> /dev/null; rm -rf "$work"' EXIT

# start HOME APPLICATION PORT OPTIONS: in the background, as $pid.
start() {
    local home=$1 app=$2 port=$3 flag=--port
    shift 3
    [ "$app" = spring-web ] && flag=--server.port
    case $app in
        liberty)
            # Its script gives an OpenJ9 a class cache and a GC log unless it is told not to.
            rm -rf "$work/liberty"
            JAVA_HOME=$home WLP_OUTPUT_DIR=$work/liberty LOG_DIR=$work/liberty/logs VERBOSEGC=false \
                OPENJ9_JAVA_OPTIONS=-Xshareclasses:none JVM_ARGS="$*" \
                "$workloads/liberty/bin/server" run loadline -- "--http.port=$port" > "$work/log" 2>&1 &
            ;;
        # shellcheck disable=SC2086
        *) "$home/bin/java" "$@" -jar "$workloads/$app.jar" "$flag=$port" > "$work/log" 2>&1 & ;;
    esac
    pid=$!
}

run() {
    local home=$1 app=$2 heap=$3 options=$4 port ready path version
    port=$((20000 + RANDOM % 10000))
    case $app in
        spring-web) path='/owners?lastName=Davis' ;;
        liberty) path=/stations ;;
        *) path=/ ;;
    esac
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$home/release")
    cd "$work" || exit 1
    # shellcheck disable=SC2086
    MALLOC_ARENA_MAX=2 start "$home" "$app" "$port" -Xmx"$heap" $options
    for ((ready = 0; ready < 600; ready++)); do
        curl -sf -m 2 -o /dev/null "http://127.0.0.1:$port$path" && break
        sleep 0.1
    done
    wrk -t1 -c8 -d"${seconds}s" "http://127.0.0.1:$port$path" > /dev/null 2>&1
    "$loadline" footprint --json $pid > "$work/json" || return
    jq -r --arg run "$version,$app,$heap,$options" 'def mib: if . == null then "" else . / 1048576 * 10 | round / 10 end;
        .regions as $r | [$run, .classes, .threads, ([$r.metaspace, $r.code_cache, $r.thread_stacks, $r.gc_native,
        $r.direct, $r.jit_and_jvm, .compiler_arena_peak, $r.cds, $r.mapped_files, $r.malloc, .native_memory_tracking,
        $r.heap, .live_heap, .resident] | map(mib) | .[])] | map(tostring) | join(",")' "$work/json"
    kill $pid
    wait $pid 2> /dev/null
    pid=
}

hotspot() {
    local tracked='-XX:NativeMemoryTracking=detail'
    run "$1" spring-web 256m "$tracked -XX:+UseSerialGC"
    run "$1" spring-web 256m "$tracked -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    run "$1" spring-web 256m "$tracked -XX:+UseParallelGC"
    run "$1" spring-web 256m "$tracked -XX:+UseG1GC"
    run "$1" spring-web 1g "$tracked -XX:+UseG1GC"
    run "$1" tomcat 128m "$tracked -XX:+UseSerialGC"
    run "$1" liberty 128m "$tracked -XX:+UseSerialGC"
    run "$1" ping 64m "$tracked -XX:+UseSerialGC"
    run "$1" ping 64m "$tracked -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
}

openj9() {
    run "$1" spring-web 256m "-Xshareclasses:none"
    run "$1" spring-web 256m "-Xshareclasses:none -Xtune:virtualized"
    run "$1" spring-web 256m "-Xshareclasses:none -Xms256m"
    run "$1" spring-web 1g "-Xshareclasses:none"
    run "$1" tomcat 128m "-Xshareclasses:none"
    run "$1" liberty 128m ""
    run "$1" ping 64m "-Xshareclasses:none"
    run "$1" ping 64m "-Xshareclasses:none -Xtune:virtualized"
}

echo "jdk,app,heap,options,classes,threads,metaspace,code_cache,stacks,gc,direct,jit_jvm,compiler_peak,cds,files,malloc,nmt,heap_touched,live_heap,resident"
for home in "$@"; do
    case $("$home/bin/java" -version 2>&1) in
        *OpenJ9*) openj9 "$home" ;;
        *) hotspot "$home" ;;
    esac
done
