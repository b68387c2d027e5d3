#!/usr/bin/env bash
# Trials as pods on a real cluster: `make test-kubernetes`. Needs a running cluster in KUBECONFIG
# whose nodes have (or can pull) two images, and rights to make namespaces. Says SKIP without.
#
#   TRIAL_IMAGE   loadline's own image [localhost/loadline:latest]: podman build -t loadline .
#   APP_IMAGE     a JVM that answers GET / on port 8080 [localhost/loadline-probe:1]
#   LOADLINE      the program [target/release/loadline]
#
# loadline as a Job speaks to the API server by its Service, and trusts the cluster's own authority alone:
# pods need a route to it (kube-proxy or its like), and it a certificate of that authority.
#
# Timings of a shared machine say little, so noise is accepted and no latency is asserted.
set -u
cd "$(dirname "$0")/.." || exit 1
LOADLINE=$(realpath -m "${LOADLINE:-${CARGO_TARGET_DIR:-target}/release/loadline}")
TRIAL_IMAGE=${TRIAL_IMAGE:-localhost/loadline:latest}
APP_IMAGE=${APP_IMAGE:-localhost/loadline-probe:1}
RUN=loadline-test-$$

skip() { echo "SKIP trials as pods: $1"; exit 0; }
command -v kubectl > /dev/null || skip "kubectl is not here"
kubectl --request-timeout=5s version > /dev/null 2>&1 || skip "no cluster answers (KUBECONFIG)"
[ -x "$LOADLINE" ] || skip "$LOADLINE is not built (make build)"

WORK=$(mktemp -d)
trap 'kubectl delete namespace,runtimeclass -l loadline-test=$RUN --wait=false > /dev/null 2>&1; rm -rf "$WORK"' EXIT
passed=0 failed=0 skipped=0

# check NAME EXIT-CODE PATTERN FLAGS...: a run of one configuration ends so and says so
check() {
    local name=$1 code=$2 pattern=$3
    shift 3
    (one "$@") > "$WORK/out" 2>&1
    verdict "$name" "$code" $? "$pattern"
}

# Replaces its subshell, so that the process is the program.
one() {
    exec "$LOADLINE" run --kubernetes --trial-image "$TRIAL_IMAGE" --image "$APP_IMAGE" --namespace "$RUN" \
        --url http://localhost:8080/ --slo 'p99<1s' --rate 50/s --warm-up 1s --measure 3s \
        --cpu "${CPU:-500m}" --memory "${MEMORY:-200Mi}" --accept-noise --state "$WORK/state" "$@"
}

verdict() {
    if [ "$3" = "$2" ] && grep -Eq -e "$4" "$WORK/out"; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1: exit code $3, wanted $2 and /$4/; it said:"
        sed 's/^/     /' "$WORK/out"
        failed=$((failed + 1))
    fi
}

space() {
    kubectl create namespace "$1" > /dev/null && kubectl label namespace "$1" "loadline-test=$RUN" > /dev/null
}

# deployment NAMESPACE NAME COMMAND: one without pods, whose application is ready when port 8080 answers. In a
# manifest `$$` is `$`.
deployment() {
    # A restricted namespace warns of it, and trials are made as that profile wants.
    kubectl -n "$1" apply -f - > /dev/null 2>&1 <<D
apiVersion: apps/v1
kind: Deployment
metadata: {name: $2}
spec:
  replicas: 0
  selector: {matchLabels: {app: $2}}
  template:
    metadata: {labels: {app: $2}}
    spec:
      containers:
      - name: app
        image: $APP_IMAGE
        command: [sh, -c, '$3']
        resources: {limits: {cpu: 500m, memory: 200Mi}}
        readinessProbe: {httpGet: {path: /, port: 8080}}
D
}

# left NAME: nothing of loadline's is in the namespace, within 60 s
left() {
    local i
    for i in $(seq 60); do
        kubectl -n "$RUN" get jobs,pods,secrets -l app.kubernetes.io/managed-by=loadline -o name > "$WORK/out"
        [ -s "$WORK/out" ] || break
        sleep 1
    done
    [ ! -s "$WORK/out" ]
    local is_empty=$?
    echo "end of list" >> "$WORK/out"
    verdict "$1" 0 $is_empty 'end of list'
}

space "$RUN" || exit 1
kubectl label namespace "$RUN" pod-security.kubernetes.io/enforce=restricted > /dev/null

check "a service that keeps the SLO passes, under restricted PodSecurity" 0 'PASS +p99'
"$LOADLINE" export last --state "$WORK/state" > "$WORK/out"
grep -q '"node":{"name":"[^"]' "$WORK/out"; verdict "its record names its node" 0 $? '"cluster":\{"context"'
grep -q '"enforced":{"throttled_periods":[1-9][0-9]*,"memory_exit_code":137}' "$WORK/out"
verdict "its record says how its node held limits" 0 $? '"cluster":\{"context"'
"$LOADLINE" show last --state "$WORK/state" > "$WORK/out" 2>&1
verdict "so does show" 0 $? 'was killed \(exit code 137\)'
# A heap that is touched whole and does not fit: less memory thrashes, or is killed, as it comes.
MEMORY=100Mi check "killed for its memory" 1 'APP_KO cgroup_oom' --jvm '-Xms200m -Xmx200m -XX:+AlwaysPreTouch'
check "never ready" 1 'APP_KO never_ready' --url http://localhost:8081/ --start-deadline 4s
CPU=60m check "too little CPU misses the SLO" 1 'SLO_MISS' --slo 'p99<100ms' --rate 400/s
check "no such context" 3 'has no context' --context none-of-this-name
check "no such image" 3 'the image .*nothing-here' --image localhost/nothing-here:1
check "no such runtime class" 3 'RuntimeClass' --runtime-class nothing-here
printf '%s\n' 'apiVersion: node.k8s.io/v1' 'kind: RuntimeClass' 'handler: nothing-here' \
    "metadata: {name: $RUN, labels: {loadline-test: $RUN}}" | kubectl apply -f - > /dev/null
check "a runtime class that its node has not" 3 'starting a pod on the node .*no runtime for' --runtime-class "$RUN"
left "its pod goes"
check "slots are counted" 0 'slots: [1-9]' --slots auto --repeats 2
check "loadline's own image is missing" 3 'name it with --trial-image' --trial-image localhost/nothing-here:2
left "nothing is left"

space "$RUN-quota"
kubectl -n "$RUN-quota" create quota small --hard=limits.cpu=1,limits.memory=300Mi > /dev/null
check "no quota" 3 'exceeded quota' --namespace "$RUN-quota"

# A LimitRange that allows each container of a trial, and no container as large as both.
space "$RUN-range"
printf '%s\n' 'apiVersion: v1' 'kind: LimitRange' 'metadata: {name: small}' \
    'spec: {limits: [{type: Container, max: {cpu: "1", memory: 256Mi}}]}' | kubectl -n "$RUN-range" apply -f - > /dev/null
check "within a LimitRange" 0 'PASS +p99' --namespace "$RUN-range"
MEMORY=300Mi check "above a LimitRange" 3 'maximum memory usage per Container' --namespace "$RUN-range"

# Exactly the Role that is emitted.
space "$RUN-rights"
kubectl -n "$RUN-rights" create serviceaccount user > /dev/null
server=$(kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster}')
cat > "$WORK/user.conf" <<C
{"apiVersion": "v1", "kind": "Config", "current-context": "u",
 "clusters": [{"name": "c", "cluster": $server}],
 "users": [{"name": "u", "user": {"token": "$(kubectl -n "$RUN-rights" create token user)"}}],
 "contexts": [{"name": "u", "context": {"cluster": "c", "user": "u"}}]}
C
(KUBECONFIG=$WORK/user.conf one --namespace "$RUN-rights") > "$WORK/out" 2>&1
verdict "without rights: which verb on which resource, and the Role" 3 $? 'cannot list resource "jobs"'
"$LOADLINE" emit --rbac "$RUN-rights" | kubectl apply -f - > /dev/null
kubectl -n "$RUN-rights" create rolebinding user --role=loadline --serviceaccount="$RUN-rights:user" > /dev/null
(KUBECONFIG=$WORK/user.conf one --namespace "$RUN-rights") > "$WORK/out" 2>&1
verdict "with exactly the emitted Role" 0 $? 'PASS +p99'

# After a workload that runs, with a config map and a secret by reference, by somebody with that Role.
kubectl -n "$RUN-rights" create configmap orders --from-literal=A=b > /dev/null
kubectl -n "$RUN-rights" create secret generic orders --from-literal=P=hunter2 > /dev/null
kubectl -n "$RUN-rights" apply -f - > /dev/null <<D
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 0
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      volumes: [{name: config, configMap: {name: orders}}]
      containers:
      - name: app
        image: $APP_IMAGE
        env:
        - {name: JAVA_TOOL_OPTIONS, value: -Dfrom=deployment}
        - {name: P, valueFrom: {secretKeyRef: {name: orders, key: P}}}
        envFrom: [{configMapRef: {name: orders}}]
        volumeMounts: [{name: config, mountPath: /etc/orders}]
        resources: {limits: {cpu: 500m, memory: 200Mi}}
        readinessProbe: {httpGet: {path: /, port: 8080}}
        livenessProbe: {httpGet: {path: /, port: 8080}}
D
from() {
    KUBECONFIG=$WORK/user.conf "$LOADLINE" run --kubernetes --trial-image "$TRIAL_IMAGE" --namespace "$RUN-rights" \
        --url http://localhost:8080/ --slo 'p99<1s' --rate 50/s --warm-up 1s --measure 3s --memory 200Mi \
        --accept-noise --state "$WORK/state" "$@"
}
from --from deployment/orders > "$WORK/out" 2>&1
verdict "a secret of production needs a word" 3 $? "would have the secret orders"
from --from deployment/orders --as-production > "$WORK/out" 2>&1
verdict "after a running workload, with exactly that Role" 0 $? 'not taken from deployment/orders: its liveness probe'
"$LOADLINE" export last --state "$WORK/state" > "$WORK/out"
grep -q 'hunter2' "$WORK/out"; verdict "no value of its secret comes here" 1 $? 'from=deployment'
from --from deployment/nothing > "$WORK/out" 2>&1
verdict "a workload that is not there" 3 $? 'deployments.apps "nothing" not found'

# Jobs, with the same Role: the kubelet has their exit code and their output.
# job NAME PATTERN EXIT-CODE COMMAND FLAGS...: a run of a CronJob that its cluster never starts ends so
job() {
    local name=$1 pattern=$2 code=$3 command=$4
    shift 4
    kubectl -n "$RUN-rights" apply -f - > /dev/null 2>&1 <<D
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: '0 0 1 1 *'
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: app, image: $APP_IMAGE, command: [sh, -c, '$command']}]
D
    KUBECONFIG=$WORK/user.conf "$LOADLINE" run --kubernetes --trial-image "$TRIAL_IMAGE" --namespace "$RUN-rights" \
        --from cronjob/report --cpu 500m --memory 200Mi --accept-noise --state "$WORK/state" "$@" > "$WORK/out" 2>&1
    verdict "$name" "$code" $? "$pattern"
}
JAVA='/opt/jre/bin/java -cp /app Probe 1 1500'
job "a job that prints what it must" 'PASS .*exit' 0 "$JAVA && printf 42-rows" --expect-output 42-rows
"$LOADLINE" export last --state "$WORK/state" > "$WORK/out"
grep -Eq '"peak_memory_bytes":[1-9]' "$WORK/out"; verdict "its memory was counted" 0 $? '"code":0'
job "a job that does not" 'no line of its output contains' 1 "$JAVA" --expect-output 42-rows
job "a job with another exit code" 'exit code 3' 1 "$JAVA; exit 3"
job "a job that is killed for its memory" 'APP_KO cgroup_oom' 1 "$JAVA" --jvm '-Xms400m -Xmx400m -XX:+AlwaysPreTouch'
job "a job that takes too long" 'SLO_MISS +it had not ended' 1 'sleep 60' --slo 'time<5s'

# The last start of a proof, in the pod that ships. An application that does as COMMAND says where it is
# the first process, which it is there and nowhere else, shows that its end is told from outside.
# shipped NAME EXIT-CODE VERDICT STARTS DEADLINE COMMAND: of every proof of so many starts the last one is as
# shipped, no other trial is, and has that verdict.
shipped() {
    deployment "$RUN-rights" shipped "$6 exec /opt/jre/bin/java -cp /app Serve 8080"
    "$LOADLINE" size --kubernetes --trial-image "$TRIAL_IMAGE" --namespace "$RUN-rights" --from deployment/shipped \
        --url http://localhost:8080/ --slo "${SLO:-p95<1s,errors<5%}" --rate 50/s --warm-up 1s --measure 4s --start-deadline "$5" \
        --jvm '-Xmx40m' --min-memory 192Mi --max-memory 256Mi --step 64Mi --confirm 1 --prove "$4" --accept-noise \
        --state "$WORK/state" > "$WORK/out" 2>&1
    local code=$?
    "$LOADLINE" export last --state "$WORK/state" | python3 -c '
import json, sys
wanted, starts, wrong, seen = sys.argv[1], int(sys.argv[2]), [], 0
for trial in json.load(sys.stdin)["trials"]:
    evidence, verdict = trial["evidence"], trial["verdict"]
    is_last = trial["purpose"] == "prove" and trial["repeat"] % starts == 0
    if evidence.get("as_shipped", False) != is_last:
        wrong.append([trial["purpose"], trial["repeat"], "as shipped or not"])
    if not is_last or verdict["class"] == "invalid":
        continue
    seen += 1
    counters = {k: v for k, v in evidence["cgroup"].items() if v is not None and v != [] and k != "oom_kills"}
    said = verdict.get("cause", verdict["class"])
    if said != wanted or counters or evidence["noise"]["foreign_cpu"] is not None:
        wrong.append([said, counters, trial.get("reason")])
    if wanted == "pass" and (evidence["exit"]["code"] != 143 or not evidence["gc"]):
        wrong.append([evidence["exit"], evidence["gc"]])
print("as shipped:", seen, wrong if wrong else "all right")' "$3" "$4" >> "$WORK/out"
    verdict "$1" "$2" $code '^as shipped: [1-9][0-9]* all right'
}
shipped "the last start of a proof runs as shipped: no counters, how it ended, its GC log" 0 pass 2 10s ""
"$LOADLINE" show last --state "$WORK/state" 2>&1 | tr -s ' \n' ' ' > "$WORK/out"
verdict "which show says" 0 $? '1 trial ran as shipped'
shipped "killed for its memory as shipped" 1 cgroup_oom 1 10s \
    '[ $$$$ = 1 ] && exec /opt/jre/bin/java -Xms300m -Xmx300m -XX:+AlwaysPreTouch -cp /app Serve 8080;'
shipped "never ready as shipped" 1 never_ready 1 5s '[ $$$$ = 1 ] && exec sleep 1000;'
# Others in its container use its CPU up, once it is ready.
SLO='p95<60ms' shipped "an SLO that is missed as shipped" 1 slo_miss 1 10s \
    '[ $$$$ = 1 ] && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do (sleep 3; while :; do :; done) & done;'
left "nothing is left of those starts"

# Two at once on one node, and two that may not share it.
# How long before the nearest begin of another one a trial of the last result began, s.
overlap() {
    "$LOADLINE" export last --state "$WORK/state" | python3 -c '
import json, sys
begins = sorted(trial["started_at_unix_ms"] for trial in json.load(sys.stdin)["trials"])
print(len(begins), "trials,", min(b - a for a, b in zip(begins, begins[1:])) // 1000, "s between the nearest begins")'
}
CPU=200m check "two slots share a node" 0 '4 of 4' --slots 2 --share-nodes 2 --trial-cpu 700m --repeats 4
overlap > "$WORK/out"; verdict "two trials of it run at once" 0 $? '^4 trials, [01] s'
CPU=200m check "two slots on one node that is not shared wait for each other, with the scheduler's reason" 0 'waits: .*anti-affinity' --slots 2 --trial-cpu 700m --repeats 2
overlap > "$WORK/out"; verdict "no two trials of it run at once" 0 $? '^2 trials'

# Load from two pods of their own; there is one node, so they share it.
CPU=300m check "load from generator pods" 0 'PASS +p99' --generators 2 --share-nodes 2 --trial-cpu 300m --repeats 2
"$LOADLINE" export last --state "$WORK/state" | python3 -c '
import json, sys
for trial in json.load(sys.stdin)["trials"]:
    for load in trial["evidence"]["load"]:
        of = load["load_from"]["generators"]
        parts = sum(generator["scheduled"] for generator in of)
        print(load["phase"], len(of), "generators,", "all" if parts == load["scheduled"] == load["ok"] else [parts, load])' > "$WORK/out"
verdict "each made its part, and all were answered" 0 $? '^measure 2 generators, all$'
# An application that answers localhost alone is ready there, and no load from elsewhere reaches it.
deployment "$RUN" local 'echo ok > /tmp/index.html; exec busybox httpd -f -p 127.0.0.1:8080 -h /tmp'
"$LOADLINE" run --kubernetes --trial-image "$TRIAL_IMAGE" --namespace "$RUN" --from deployment/local --container app \
    --url http://localhost:8080/ --slo 'p99<1s' --rate 50/s --warm-up 1s --measure 3s --cpu 300m --memory 200Mi \
    --accept-noise --state "$WORK/state" --generators 1 --share-nodes 2 --trial-cpu 300m > "$WORK/out" 2>&1
verdict "an application that only localhost reaches is refused" 3 $? 'ready on localhost, but not for the generator .*refused'
left "the generators go with their run"

# disturbed COMMAND...: a run that somebody disturbs, with the name of its pod as last argument.
disturbed() {
    (one --measure 8s) > "$WORK/out" 2>&1 &
    local run=$! pod="" i
    for i in $(seq 100); do
        pod=$(kubectl -n "$RUN" get pods -o name --field-selector status.phase=Running | grep -v look | head -1)
        [ -n "$pod" ] && break
        sleep 0.2
    done
    sleep 3
    "$@" "${pod#pod/}" > /dev/null
    wait "$run"
}
left "nothing is left of those"
disturbed kubectl -n "$RUN" delete pod --wait=false
verdict "a pod that is deleted makes its trial INVALID, and it is repeated" 0 $? 'INVALID runtime_lost'
grep -Eq 'PASS +p99' "$WORK/out"; verdict "the repeat passes" 0 $? 'PASS'
left "nothing is left of it"
resize='{"spec":{"containers":[{"name":"application","resources":{"requests":{"cpu":"400m"},"limits":{"cpu":"400m"}}}]}}'
disturbed kubectl -n "$RUN" patch pod --subresource resize --patch "$resize"
verdict "limits that somebody changes make a trial INVALID" 0 $? 'INVALID other_limits'

# loadline is killed in the middle: what was finished stays, resume goes on, nothing is left.
(one --repeats 3) > "$WORK/killed" 2>&1 &
run=$!
for _ in $(seq 300); do
    grep -q '#1 ' "$WORK/killed" && break
    sleep 0.2
done
sleep 2
kill -KILL "$run"
wait "$run" 2> /dev/null
"$LOADLINE" resume last --state "$WORK/state" > "$WORK/out" 2>&1
verdict "a killed run goes on" 0 $? '3 of 3'
"$LOADLINE" clean --kubernetes --namespace "$RUN" > "$WORK/out" 2>&1
verdict "clean finds nothing more" 0 $? 'removed 0 Jobs'
left "nothing is left of the killed run"

# loadline itself as a Job, begun by somebody with exactly that Role. Nothing of it runs here meanwhile.
space "$RUN-inside"
kubectl label namespace "$RUN-inside" pod-security.kubernetes.io/enforce=restricted > /dev/null
STATE=$WORK/inside
inside() { # COMMAND FLAGS...
    KUBECONFIG=$WORK/user.conf "$LOADLINE" "$@" --state "$STATE"
}
send() { # COMMAND FLAGS...
    inside "$@" --kubernetes --in-cluster --namespace "$RUN-inside" --trial-image "$TRIAL_IMAGE" --image "${IMAGE:-$APP_IMAGE}" \
        --url http://localhost:8080/ --rate 50/s --warm-up 1s --measure 3s --cpu 500m --accept-noise
}
finished() { # so many finished trials are kept there, within 5 min
    local i
    for i in $(seq 300); do
        [ "$(kubectl -n "$RUN-inside" get configmaps -l loadline.dev/piece -o name | wc -l)" -ge $(($1 + 2)) ] && return 0
        sleep 1
    done
    return 1
}
ids() { "$LOADLINE" export last --state "$STATE" | python3 -c '
import json, sys
print("\n".join(trial["id"] for trial in json.load(sys.stdin)["trials"]))'; }
kept() { # whether the trials of file $1 are among those of the store now, which are $2 and none twice
    ids > "$WORK/now"
    echo "trials: $(wc -l < "$WORK/now"), before: $(wc -l < "$1")" >> "$WORK/out"
    [ "$(wc -l < "$WORK/now")" = "$2" ] && [ "$(sort -u "$WORK/now" | wc -l)" = "$2" ] && [ -s "$1" ] &&
        [ -z "$(grep -vxFf "$WORK/now" "$1")" ]
}
empty() { # NAME: nothing is left in that namespace, within 60 s
    local i
    for i in $(seq 60); do
        kubectl -n "$RUN-inside" get jobs,pods,secrets,configmaps -l app.kubernetes.io/managed-by=loadline -o name > "$WORK/out"
        [ -s "$WORK/out" ] || break
        sleep 1
    done
    [ ! -s "$WORK/out" ]
    local is_empty=$?
    echo "end of list" >> "$WORK/out"
    verdict "$1" 0 $is_empty 'end of list'
}
"$LOADLINE" emit --rbac "$RUN-inside" | kubectl apply -f - > /dev/null
kubectl -n "$RUN-inside" delete serviceaccount loadline > /dev/null
kubectl -n "$RUN-inside" create rolebinding user --role=loadline --serviceaccount="$RUN-rights:user" > /dev/null
send run --memory 200Mi --slo 'p99<1s' > "$WORK/out" 2>&1
verdict "loadline in the cluster without its service account" 3 $? 'serviceaccount "loadline" not found'
grep -q 'emit --rbac' "$WORK/out"; verdict "what to do about it" 0 $? 'emit --rbac'
"$LOADLINE" emit --rbac "$RUN-inside" | kubectl apply -f - > /dev/null
IMAGE=localhost/nothing-here:1 send run --memory 200Mi --slo 'p99<1s' > "$WORK/out" 2>&1
verdict "an image that the loadline in the cluster cannot have is told here" 3 $? 'the image .*nothing-here'
empty "nothing is left of those"
# The authority that a pod trusts, which its cluster publishes in each namespace; one without it starts no pod
# with a token.
authority() {
    local i
    for i in $(seq 10); do
        kubectl -n "$RUN-inside" get configmap kube-root-ca.crt > /dev/null 2>&1 && return 0
        sleep 1
    done
    return 1
}
if authority; then
send size --slo 'p95<1s,errors<5%' --jvm '-Xmx40m' --min-memory 192Mi --max-memory 256Mi --step 64Mi --confirm 1 --prove 3 > "$WORK/out" 2>&1
verdict "a search is sent to the cluster" 0 $? 'loadline now runs in the cluster'
"$LOADLINE" list --state "$STATE" > "$WORK/out"; verdict "the list says where it is" 0 $? 'in a cluster'
"$LOADLINE" clean --kubernetes --namespace "$RUN-inside" > "$WORK/out" 2>&1
verdict "clean leaves it alone" 0 $? 'left alone'
kubectl -n "$RUN-inside" wait --for=condition=Complete --timeout=300s job -l loadline.dev/result > "$WORK/out" 2>&1
verdict "it runs to its end there, with no loadline here" 0 $? 'condition met'
inside resume last > "$WORK/out" 2>&1; verdict "its end is fetched" 0 $? '[0-9]+ finished trials came from the cluster'
grep -q '0 of 3 fresh starts' "$WORK/out"; verdict "with its proof" 0 $? 'fresh starts'
empty "nothing is left of it"
send run --memory 200Mi --slo 'p99<1s' --repeats 6 > "$WORK/out" 2>&1; verdict "a run is sent" 0 $? 'loadline now runs in the cluster'
finished 2; inside resume last --fetch > "$WORK/out" 2>&1; verdict "what is finished is fetched" 0 $? 'it continues there'
ids > "$WORK/before"
inside resume last > "$WORK/out" 2>&1; verdict "a laptop takes over" 0 $? 'stopping loadline in the cluster'
kept "$WORK/before" 6; verdict "with the same finished trials, none run twice" 0 $? 'trials: 6'
empty "nothing is left of that"
send run --memory 200Mi --slo 'p99<1s' --repeats 6 > "$WORK/out" 2>&1; verdict "another run is sent" 0 $? 'loadline now runs in the cluster'
finished 2; inside resume last --fetch > "$WORK/out" 2>&1
ids > "$WORK/before"
kubectl -n "$RUN-inside" delete pods -l loadline.dev/result --force --grace-period=0 > "$WORK/out" 2>&1
verdict "its loadline is killed" 0 $? 'force deleted'
kubectl -n "$RUN-inside" wait --for=condition=Complete --timeout=300s job -l loadline.dev/result > "$WORK/out" 2>&1
verdict "the next one goes on" 0 $? 'condition met'
inside resume last > "$WORK/out" 2>&1; verdict "and its end is fetched" 0 $? '6 of 6'
kept "$WORK/before" 6; verdict "with the same finished trials again" 0 $? 'trials: 6'
empty "nothing is left at the end"
else
    echo "SKIP loadline as a Job: the cluster publishes no authority of its own (kube-root-ca.crt)"
    skipped=1
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
