#!/bin/bash
# Tomcat's start in images with and without a start-up cache that a step of their build filled: the
# table of docs/guides/openj9.md, of experiments/shared-classes-image.toml.
#
#   benches/shared-classes-image.sh OUT
#
# Makes two base images of this machine's own JDKs (an OpenJ9 25 and a HotSpot 25 below /usr/lib/jvm; no
# registry is asked), measures the workload once on each, lets `loadline emit --cache` write the
# Dockerfiles, builds them with podman, runs the experiment, and prints the table. What is in OUT stays
# (result.json.gz, result.md, trials.csv), the images go. Needs root, podman and runc, python3, the
# workload (make workloads), a built loadline (LOADLINE, default target/release/loadline), 4 GB of disk
# and a quiet machine for 7 minutes. STEPS says which of the three steps are done. The last one,
# `installed`, starts Tomcat as the study had it (its start script, no container, no limits) and prints
# what Tomcat's own line says of its start beside the time from exec to that line, and the memory then and
# five seconds later.
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
loadline=$(realpath "${LOADLINE:-target/release/loadline}")
steps=${STEPS:-images measure installed}
image=localhost/loadline-tomcat
jar=build/workloads/tomcat.jar
[ -f $jar ] || { echo "no $jar: make workloads" >&2; exit 1; }

# home KIND: of the first JDK 25 of a virtual machine.
home() {
    for home in /usr/lib/jvm/*/; do
        grep -q '^JAVA_VERSION="25' "$home/release" 2>/dev/null || continue
        kind=hotspot
        [ -d "$home/lib/j9vm" ] && kind=openj9
        [ $kind = "$1" ] && { realpath "$home"; return; }
    done
    echo "no $1 25 below /usr/lib/jvm" >&2
    exit 1
}

# base HOME NAME: an image with a JDK, bash and sleep, and nothing else.
base() {
    local root=$out/root
    rm -rf "$root"
    mkdir -p "$root"/{usr/bin,etc,tmp,opt}
    chmod 1777 "$root/tmp"
    cp /usr/bin/bash /usr/bin/sleep "$root/usr/bin/"
    # A JVM whose user has no name keeps no counters.
    printf 'root:x:0:0::/:/usr/bin/bash\napp:x:64999:64999::/:/usr/bin/bash\n' >"$root/etc/passwd"
    { find "$1/" -name '*.so' -o -path '*/bin/java'; echo /usr/bin/bash; echo /usr/bin/sleep; } \
        | xargs ldd 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$1" | sort -u \
        | while read -r library; do
            [ -e "$library" ] && mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
        done
    # Opened where a thread ends, and named by no program.
    find /lib/*-linux-gnu -name libgcc_s.so.1 -exec cp -L --parents {} "$root" \;
    tar --owner=0 --group=0 -cf "$out/base.tar" -C "$root" . --exclude=jmods --exclude=src.zip \
        --exclude=demo --exclude=man -C / "${1#/}"
    podman import -q --change "ENV PATH=$1/bin:/usr/bin" "$out/base.tar" "$2"
    rm -rf "$root" "$out/base.tar"
}

# built BASE NAME FLAGS...: the image that emit's files make of the last result.
built() {
    local base=$1 name=$2
    shift 2
    local context=$out/context-${name##*:}
    rm -rf "$context"
    "$loadline" emit last --state "$out/state" --to "$context" --for docker --plain --base-image "$base" "$@" \
        >/dev/null 2>"$context.said" || { cat "$context.said" >&2; exit 1; }
    cp --preserve=timestamps $jar "$context/"
    podman --runtime=runc --cgroup-manager=cgroupfs build --layers=false --network=none --ulimit nofile=1024:1024 \
        --ulimit nproc=4096:4096 -t "$name" "$context" >"$context.log" 2>&1 || { tail -n 20 "$context.log" >&2; exit 1; }
}

images() {
    local kind jdk cache
    for kind in openj9 hotspot; do
        jdk=25
        [ $kind = openj9 ] && jdk=openj9
        base "$(home $kind)" $image-base:$jdk
        # What emit writes the files of: the size that the experiment has.
        "$loadline" size --wait --state "$out/state" -q --accept-noise --cpu 1 --min-memory 504Mi \
            --max-memory 512Mi --prove 1 --slo 'start<60s' --rate 20/s --warm-up 0s --measure 1s \
            --jdk "${jdk/openj9/openj9-25}" --url http://localhost:8080/health \
            -- java -jar $jar --port=8080 >/dev/null
        built $image-base:$jdk $image:$jdk
        for cache in $([ $kind = openj9 ] && echo scc || echo appcds aot); do
            built $image-base:$jdk $image:$jdk-$cache --cache "$cache"
        done
    done
    for name in openj9 openj9-scc 25 25-appcds 25-aot; do
        podman image inspect -f "$name {{.Size}}" $image:$name
    done >"$out/sizes"
}

measure() {
    "$loadline" run --wait --state "$out/state" -q experiments/shared-classes-image.toml >/dev/null
    "$loadline" export last --state "$out/state" -q -o "$out/result.json.gz"
    "$loadline" export last --state "$out/state" -q --format markdown -o "$out/result.md"
    "$loadline" export last --state "$out/state" -q --format csv -o "$out/trials.csv"
    python3 - "$out" <<'PY'
import gzip, json, random, statistics, sys
out = sys.argv[1]
result = json.load(gzip.open(out + "/result.json.gz"))
sizes = dict(line.split() for line in open(out + "/sizes"))
AGAINST = {"openj9": "openj9-none", "openj9-scc": "openj9-none", "25-appcds": "25", "25-aot": "25", "study-scc": "study-none"}
starts = {}
for trial in result["trials"]:
    start = dict(trial["evidence"]["start"], transparent=trial["evidence"]["cgroup"]["peak_anon_huge_bytes"])
    if trial["verdict"]["class"] in ("pass", "fail") and start["ready_ns"]:
        starts.setdefault(trial["configuration"]["label"], {})[trial["repeat"]] = start
def of(label, key):
    return [start[key] or 0 for start in starts[label].values()]
def median(label, key, unit):
    return statistics.median(of(label, key)) / unit
def memory(start):
    return start["rss_bytes"] + (start["hugetlb_bytes"] or 0)
def ratio(label, figure):
    base = AGAINST.get(label)
    if not base:
        return "1"
    both = sorted(starts[label].keys() & starts[base].keys())
    ratios = [figure(starts[label][n]) / figure(starts[base][n]) for n in both]
    draw = random.Random(1)
    means = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.2f} ({means[50]:.2f} to {means[1949]:.2f})"
print("| Image | Starts | Start, s | Ratio | CPU until ready, s | RSS at ready, MiB | Ratio | PSS, MiB | Huge pages, MiB | Transparent ones, MiB | Image, MB |")
print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
for label in sorted(starts, key="openj9-none openj9 openj9-scc 25 25-appcds 25-aot study-none study-scc".split().index):
    image = {"openj9-none": "openj9", "study-none": "openj9", "study-scc": "openj9-scc"}.get(label, label)
    mib = 1 << 20
    print(f"| `{label}` | {len(starts[label])} | {median(label, 'ready_ns', 1e9):.2f} | {ratio(label, lambda s: s['ready_ns'])} "
          f"| {median(label, 'cpu_ns', 1e9):.2f} | {statistics.median(map(memory, starts[label].values())) / mib:.1f} "
          f"| {ratio(label, memory)} | {median(label, 'pss_bytes', mib):.1f} | {median(label, 'hugetlb_bytes', mib):.0f} "
          f"| {median(label, 'transparent', mib):.0f} | {int(sizes[image]) / 1e6:.1f} |")
PY
    [ -n "${KEEP:-}" ] || podman rmi -f $image:openj9 $image:openj9-scc $image:25 $image:25-appcds $image:25-aot \
        $image-base:openj9 $image-base:25 >/dev/null 2>&1 || true
}

# rss PID: its resident KiB.
rss() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"
}

# started WAY OPTIONS...: one start of the installed Tomcat; its own figure and that from exec, ms; RSS
# then and five seconds later, KiB.
started() {
    local way=$1 begin line pid ready
    shift
    : >"$out/installed.log"
    begin=$(date +%s%3N)
    JAVA_HOME=$jvm CATALINA_TMPDIR=$out/tmp CATALINA_OPTS="$*" unshare -n \
        build/workloads/tomcat-installed/bin/catalina.sh run >"$out/installed.log" 2>&1 &
    pid=$!
    # By the clock of the line: looking often would take CPU from what starts.
    until line=$(grep 'Server startup in' "$out/installed.log"); do
        kill -0 $pid || { cat "$out/installed.log" >&2; exit 1; }
        sleep 0.1
    done
    ready=$(rss $pid)
    sleep 5
    echo "$way $(sed 's/.*startup in \[\([0-9]*\).*/\1/' <<<"$line") $(($(date -d "${line%% INFO*}" +%s%3N) - begin)) \
        $ready $(rss $pid)"
    kill $pid
    wait $pid || true
}

installed() {
    local jvm shared=-Xshareclasses:name=bench,cacheDir=$out/scc
    jvm=$(home openj9)
    rm -rf "$out/scc"
    mkdir -p "$out/tmp"
    started fill $shared -Xscmx80m >/dev/null
    for ((i = 0; i < 10; i++)); do
        started none -Xshareclasses:none
        started scc $shared,readonly
    done >"$out/installed"
    python3 - "$out/installed" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
of = {way: [list(map(int, row[1:])) for row in rows if row[0] == way] for way in ("none", "scc")}
print("| Installed Tomcat, no limits | Its own line, ms | Exec to that line, ms | RSS then, MiB | 5 s later |\n|---|---:|---:|---:|---:|")
for way, starts in of.items():
    own, whole, *rss = (statistics.median(column) for column in zip(*starts))
    print(f"| {way} | {own:.0f} | {whole:.0f} | " + " | ".join(f"{kib / 1024:.1f}" for kib in rss) + " |")
ratios = [statistics.median(a / b for a, b in zip(scc, none)) for scc, none in zip(zip(*of["scc"]), zip(*of["none"]))]
print("| ratio of pairs | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
PY
}

for step in $steps; do $step; done
