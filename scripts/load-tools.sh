#!/bin/sh
# Installs load tools that tests drive trials with, into build/load-tools: whatever the registries
# have. What cannot be had is named here, and its test is skipped by name.
set -eu
cd "$(dirname "$0")/.."

to=$PWD/build/load-tools
mkdir -p "$to/bin"

say() { printf 'setup: %s\n' "$*"; }

# try NAME COMMAND...: installs a tool unless its program is there.
try() {
    name=$1
    shift
    [ -e "$to/bin/$name" ] && return
    say "load tool $name"
    "$@" >>build/setup.log 2>&1 && return
    rm -f "$to/bin/$name"
    say "optional load tool $name cannot be had here: its test is skipped by name"
}

go_module() { command -v go && GOBIN=$to/bin go install "$1"; }

# Debian's Python: trials run as a user who cannot read one below /root.
locust() {
    /usr/bin/python3 -m venv --copies "$to/locust" \
        && "$to/locust/bin/pip" install --quiet --only-binary=:all: --require-hashes \
            -r scripts/load-tools/locust.txt \
        && ln -sf ../locust/bin/locust "$to/bin/locust"
}

jars() { mvn -q -B -f scripts/load-tools/pom.xml -P "$1" dependency:copy-dependencies -DoutputDirectory="$2"; }

# java_program NAME WORDS: a program of Java words.
java_program() {
    printf '#!/bin/sh\nexec java %s "$@"\n' "$2" >"$to/bin/$1"
    chmod 755 "$to/bin/$1"
}

# JMeter finds the parts of itself by their places.
jmeter() {
    home=$to/jmeter
    jars jmeter "$home/lib" || return 1
    mkdir -p "$home/bin" "$home/lib/ext" "$home/lib/junit"
    mv "$home"/lib/ApacheJMeter-*.jar "$home/bin/ApacheJMeter.jar"
    mv "$home"/lib/ApacheJMeter_*.jar "$home/lib/ext"
    python3 -m zipfile -e "$home"/lib/ext/ApacheJMeter_config-*.jar "$home" || return 1
    java_program jmeter "-Djmeter.home=$home -jar $home/bin/ApacheJMeter.jar"
}

# Simulations are classes in the working directory.
gatling() {
    jars gatling "$to/gatling" || return 1
    java_program gatling "--add-opens=java.base/java.lang=ALL-UNNAMED -cp '.:$to/gatling/*' io.gatling.app.Gatling"
}

try vegeta go_module github.com/tsenart/vegeta/v12@v12.13.0
try hey go_module github.com/rakyll/hey@v0.1.5
try ghz go_module github.com/bojand/ghz/cmd/ghz@v0.120.0
try locust locust
try jmeter jmeter
try gatling gatling
