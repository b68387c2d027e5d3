#!/bin/bash
# What loadline-launch costs over a bare exec: CPU, forks, memory, size. Run it on an idle machine.
#
#   RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile launcher -p loadline-launcher
#   benches/launcher-cost.sh target/launcher/loadline-launch [RUNS] [JAR JDK_HOME]
#
# With a JAR that `loadline cache` made a cache for, with the JDK in JDK_HOME, a row says what the check
# of that cache costs: its whole file is read, because a damaged one can abort the JVM.
#
# Every row starts the same program (/bin/true under the name java, with a release file beside it)
# RUNS times in the same cgroup; CPU is user + system time of all children a run, forks are the
# kernel's count of new processes less the one a run that this script makes.
set -eu
launcher=$(realpath "$1")
runs=${2:-1000}
cached=${3:-} jdk_home=${4:-}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# The program under the name java, in a JDK whose release file is the one given.
fake() {
    mkdir -p "$temporary/$1/bin"
    cp /bin/true "$temporary/$1/bin/java"
    cat > "$temporary/$1/release"
}
echo 'JAVA_VERSION="17.0.15"' | fake plain
java=$temporary/plain/bin/java
if [ -n "$cached" ]; then
    fake cached < "$jdk_home/release"
    "$launcher" --explain -- "$temporary/cached/bin/java" -jar "$cached" 2>&1 | grep "lies next to" ||
        { echo "launcher-cost: no usable cache beside $cached" >&2; exit 1; }
fi
export LOADLINE_LOG=quiet

forks() { awk '$1 == "processes" { print $2 }' /proc/stat; }

row() {
    local name=$1 before after cpu
    shift
    before=$(forks)
    TIMEFORMAT='%U %S %R'
    cpu=$( { time for ((i = 0; i < runs; i++)); do "$@"; done > /dev/null 2>&1; } 2>&1 | tail -1)
    after=$(forks)
    awk -v name="$name" -v runs="$runs" -v forks=$((after - before)) -v cpu="$cpu" 'BEGIN {
        split(cpu, t, " ")
        # Two processes of the row itself: the subshell and tail; forks() has awk and a subshell.
        printf "%-34s %7.3f ms CPU %7.3f ms wall %6.2f forks\n", name,
            (t[1] + t[2]) * 1000 / runs, t[3] * 1000 / runs, (forks - runs - 4) / runs
    }'
}

echo "runs a row: $runs; size: $(stat -c %s "$launcher") bytes"
for round in 1 2 3; do
    echo "round $round"
    row "bare exec" "$java" -version
    row "loadline-launch, mode off" "$launcher" --mode=off -- "$java" -version
    row "loadline-launch" "$launcher" -- "$java" -version
    [ -z "$cached" ] || row "loadline-launch, with a cache" "$launcher" -- "$temporary/cached/bin/java" -jar "$cached"
    row "loadline-launch, 512Mi, JSON" env LOADLINE_LOG=json "$launcher" --memory=512Mi --cpus=1.5 -- "$java" -version
    row "env, for the row above" env LOADLINE_LOG=json "$java" -version
    row "dash -c exec" dash -c 'exec "$0" -version' "$java"
    row "bash -c exec" bash -c 'exec "$0" -version' "$java"
done
