#!/usr/bin/env bash
# What a search as pods loses when something is killed with signal 9 in the middle of it, at random
# moments: nothing that was finished, and nothing stays behind. `make test-kubernetes` runs the short
# form; the cluster, images and the program are those of scripts/test-kubernetes.sh.
#
#   KILLS             of loadline [3; the long form is 20]
#   KILLS_API_SERVER  of the API server [0; 5]
#   KILLS_KUBELET     of the kubelet [0; 3]
#   KILL_API_SERVER   a command that kills it and has it started again
#   KILL_KUBELET      the same for the kubelet
#   SEED              of the moments [1]
#
# On kind the two commands are `docker exec kind-control-plane pkill -9 kube-apiserver` (the kubelet
# starts it again) and `docker exec kind-control-plane pkill -9 kubelet`. Where nobody starts it again,
# this does: `scripts/test-kubernetes-kills.sh again FILE`, with FILE the one that holds its process id.
#
# The application needs 128Mi, more than the smallest size and less than the next: every search comes
# to the same trials, however busy the machine is, and one that was lost would be measured twice.
set -u
cd "$(dirname "$0")/.." || exit 1

# again FILE: the process of that file is killed, and started as it was, in its mount namespace: of
# what a kubelet mounts elsewhere containers see nothing.
if [ "${1:-}" = again ]; then
    pid=$(cat "$2")
    mapfile -d '' -t words < "/proc/$pid/cmdline"
    cwd=$(readlink "/proc/$pid/cwd")
    exec 4< "/proc/$pid/ns/mnt" || exit 1
    kill -KILL "$pid" || exit 1
    while [ -e "/proc/$pid" ]; do sleep 0.1; done
    setsid nsenter --mount=/proc/self/fd/4 --wdns="$cwd" "${words[@]}" > "$2.out" 2>&1 < /dev/null &
    echo $! > "$2"
    exit 0
fi

LOADLINE=$(realpath -m "${LOADLINE:-${CARGO_TARGET_DIR:-target}/release/loadline}")
TRIAL_IMAGE=${TRIAL_IMAGE:-localhost/loadline:latest}
APP_IMAGE=${APP_IMAGE:-localhost/loadline-probe:1}
RUN=loadline-kills-$$
RANDOM=${SEED:-1}

skip() { echo "SKIP kills of $1: $2"; }
command -v kubectl > /dev/null || { skip "searches as pods" "kubectl is not here"; exit 0; }
kubectl --request-timeout=5s version > /dev/null 2>&1 || { skip "searches as pods" "no cluster answers (KUBECONFIG)"; exit 0; }
[ -x "$LOADLINE" ] || { skip "searches as pods" "$LOADLINE is not built (make build)"; exit 0; }

WORK=$(mktemp -d)
trap 'kubectl delete namespace "$RUN" --wait=false > /dev/null 2>&1; rm -rf "$WORK"' EXIT
passed=0 failed=0

verdict() { # NAME WHETHER
    if [ "$2" = 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1; it said:"
        sed 's/^/     /' "$WORK/out"
        failed=$((failed + 1))
    fi
}

# search STATE, resume STATE: replace their subshell, so that the process is the program.
search() {
    exec "$LOADLINE" size --kubernetes --trial-image "$TRIAL_IMAGE" --image "$APP_IMAGE" --namespace "$RUN" \
        --url http://localhost:8080/ --slo 'p95<5s,errors<5%' --rate 50/s --warm-up 1s --measure 4s --cpu 500m \
        --jvm '-Xms96m -Xmx96m -XX:+AlwaysPreTouch' --min-memory 64Mi --max-memory 512Mi --step 64Mi \
        --confirm 1 --prove 2 --accept-noise --state "$1"
}
resume() { exec "$LOADLINE" resume last --state "$1"; }

# trials STATE: each evidence of the last result, without what depends on the moment.
trials() {
    "$LOADLINE" export last --state "$1" | python3 -c '
import json, sys
result = json.load(sys.stdin)
for trial in result["trials"]:
    ends = trial["verdict"]["class"]
    if ends != "invalid":
        ok = "kept" if ends == "pass" else "missed"
        print(trial["configuration"]["memory_bytes"] >> 20, trial["purpose"], trial["repeat"], ok)' | sort
}

# finished STATE: the ids of all finished trials.
finished() {
    "$LOADLINE" export last --state "$1" 2> /dev/null | python3 -c '
import json, sys
try: print("\n".join(sorted(trial["id"] for trial in json.load(sys.stdin)["trials"])))
except ValueError: pass' | sed '/^$/d'
}

# ended NAME STATE EXIT-CODE: what must be so once a search has its answer.
ended() {
    [ "$3" = 0 ]; verdict "$1: it ends with its answer" $?
    trials "$2" > "$WORK/these"
    diff "$WORK/reference" "$WORK/these" > "$WORK/out"; verdict "$1: the same trials as without kills, none twice" $?
    finished "$2" > "$WORK/last"
    sort -u "$WORK/kept" | comm -23 - "$WORK/last" > "$WORK/out"
    local all
    all=$(sort -u "$WORK/kept" | wc -l)
    [ ! -s "$WORK/out" ]; verdict "$1: of $all trials that were finished at a kill none is lost" $?
    "$LOADLINE" clean --kubernetes --namespace "$RUN" > "$WORK/out" 2>&1; verdict "$1: clean ends" $?
    local i
    for i in $(seq 60); do
        kubectl -n "$RUN" get jobs,pods,secrets -l app.kubernetes.io/managed-by=loadline -o name > "$WORK/out" 2>&1
        [ -s "$WORK/out" ] || break
        sleep 1
    done
    [ ! -s "$WORK/out" ]; verdict "$1: nothing is left" $?
}

# moment: a pause of up to 25 s, at random: looks, starts, loads and ends of trials fall into it.
moment() { sleep "$((RANDOM % 25)).$((RANDOM % 10))"; }

# killed NAME KILLS COMMAND...: searches with so many kills of something else, at most three in each.
killed() {
    local name=$1 left=$2 round=1 run i
    shift 2
    while [ "$left" -gt 0 ]; do
        : > "$WORK/kept"
        (search "$WORK/$round") > "$WORK/said" 2>&1 &
        run=$!
        for i in 1 2 3; do
            moment
            [ "$left" -gt 0 ] && kill -0 "$run" 2> /dev/null || break
            finished "$WORK/$round" >> "$WORK/kept"
            bash -c "$*" || { verdict "$name: the command that kills it" 1; return; }
            left=$((left - 1))
            sleep 8
        done
        wait "$run"
        local code=$?
        cp "$WORK/said" "$WORK/out"
        ended "$name, search $round ($left kills left)" "$WORK/$round" "$code"
        [ "$code" = 0 ] || break
        rm -rf "${WORK:?}/$round"
        round=$((round + 1))
    done
}

kubectl create namespace "$RUN" > /dev/null || exit 1
: > "$WORK/kept"
(search "$WORK/reference-state") > "$WORK/out" 2>&1; reference=$?
verdict "a search without kills" "$reference"
[ "$reference" = 0 ] || exit 1
trials "$WORK/reference-state" > "$WORK/reference"
sed 's/^/     /' "$WORK/reference"

# loadline is killed up to seven times in each search: a trial needs its time.
left=${KILLS:-3} round=1
while [ "$left" -gt 0 ]; do
    : > "$WORK/kept"
    begin=search code=137 kills=0
    while [ "$code" = 137 ]; do
        ($begin "$WORK/$round") > "$WORK/out" 2>&1 &
        run=$!
        if [ "$left" -gt 0 ] && [ "$kills" -lt 7 ]; then
            moment
            finished "$WORK/$round" >> "$WORK/kept"
            kill -KILL "$run" 2> /dev/null && left=$((left - 1)) kills=$((kills + 1))
        fi
        wait "$run" 2> /dev/null
        code=$?
        # Before its first result is stored there is nothing to go on with.
        "$LOADLINE" list --state "$WORK/$round" --json 2> /dev/null | grep -q '"id"' && begin=resume
    done
    ended "loadline killed $kills times" "$WORK/$round" "$code"
    [ "$code" = 0 ] || break
    rm -rf "${WORK:?}/$round"
    round=$((round + 1))
done

if [ -n "${KILL_API_SERVER:-}" ]; then
    killed "API server killed" "${KILLS_API_SERVER:-5}" "$KILL_API_SERVER"
else
    skip "the API server" "KILL_API_SERVER says no command"
fi
if [ -n "${KILL_KUBELET:-}" ]; then
    killed "kubelet killed" "${KILLS_KUBELET:-3}" "$KILL_KUBELET"
else
    skip "the kubelet" "KILL_KUBELET says no command"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
