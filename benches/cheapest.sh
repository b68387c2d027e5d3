#!/bin/sh
# Searches the cheapest deployment of a service several times and compares it with common rules.
#
#   benches/cheapest.sh JAR URL_PATH RATE OUT [SEARCHES] [BUDGET]
#
# Prints, for each independent search, the deployment and its price; then runs JVM defaults, the
# 75 % rule, Paketo's calculator and fabric8 in the container that the first search found. Needs
# root, a built loadline (LOADLINE, default target/release/loadline) and a quiet machine: about the
# budget for each search, and a quarter of an hour for the comparison. Results stay in OUT/state.
# ARGS are the application's arguments, Spring Boot's port unless set (Tomcat: ARGS=--port=8080);
# PROVE are the fresh starts that prove the first search's answer (20), PROVE_MORE those of the others
# (5); SLO, SIZES and LOADLINE_FLAGS (as --warm-up 3s) say what they say.
set -eu
jar=$1 path=$2 rate=$3 out=$4 searches=${5:-3} budget=${6:-30m}
loadline=${LOADLINE:-target/release/loadline}
slo=${SLO:-p99<250ms,errors<1%}
sizes=${SIZES:-0.25/512Mi,0.25/1Gi,0.5/1Gi,0.5/2Gi,1/2Gi,1/3Gi}
url="http://localhost:8080$path"
mkdir -p "$out"

i=1
prove=${PROVE:-20}
while [ "$i" -le "$searches" ]; do
    # Exit code 1 is an answer too: nothing feasible, or not proven.
    "$loadline" size --state "$out/state" --json --prices fargate --sizes "$sizes" \
        --rate "$rate" --slo "$slo" --url "$url" --budget "$budget" --prove "$prove" \
        ${LOADLINE_FLAGS:-} -- java -jar "$jar" ${ARGS-"--server.port=8080"} >"$out/search-$i.json" || [ $? = 1 ]
    prove=${PROVE_MORE:-5}
    i=$((i + 1))
done

chosen() {
    python3 - "$1" <<'PY'
import json, sys
d = (json.load(open(sys.argv[1])).get("recommendation") or {}).get("deployment")
if d:
    c = d["chosen"]
    # The last word is the result's id, for judge.
    print(c["limits"]["cpu_millicpus"], c["limits"]["memory_bytes"], d["each"], c["replicas"],
          round(c["cost"]["per_month"], 2), d["is_proven"],
          json.load(open(sys.argv[1]))["result"])
PY
}

echo "search cpu_millicpus memory_bytes rate_of_each replicas usd_month proven result"
i=1
while [ "$i" -le "$searches" ]; do
    echo "$i $(chosen "$out/search-$i.json")"
    i=$((i + 1))
done

# shellcheck disable=SC2046 # the words are the fields
set -- $(chosen "$out/search-1.json") "$jar"
[ $# -eq 8 ] || { echo "the first search has no answer to compare" >&2; exit 1; }
"$loadline" judge --state "$out/state" --cpu "${1}m" --memory "$(($2 / 1048576))Mi" --rate "$3/s" --measured "$7" \
    --advice defaults --advice percent=75 --advice paketo --advice fabric8 --slo "$slo" \
    --url "$url" ${LOADLINE_FLAGS:-} -- java -jar "$8" ${ARGS-"--server.port=8080"} || [ $? = 1 ]
