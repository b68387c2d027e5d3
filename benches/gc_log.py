#!/usr/bin/env python3
"""Speed of `loadline gc` beside GCViewer, and the pauses each finds.

Usage: benches/gc_log.py [--pairs 5] [--seconds 8] [--gcviewer JAR] [LOG...]

Builds loadline (release), gets GCViewer 1.36 from Maven Central with mvn, and lets each read the
same logs in turn, a fresh process each time: what a user waits for. Without LOG it first makes
logs: the allocating program of the parser's test data runs for --seconds under each collector of
every JDK found in JAVA_HOME and /usr/lib/jvm, with uptime, level and tags before each line:
GCViewer reads no line that has nanoseconds too. Rates are the log's size by the median CPU time
(user + system of the whole process) and by the median wall time.
"""

import argparse
import glob
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "crates/jvm/tests/data/gclog/Allocate.java")
GCVIEWER = "com.github.chewiebug:gcviewer:1.36"
COLLECTORS = ["Serial", "Parallel", "G1", "Z", "Shenandoah"]


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options)


def build():
    run(["cargo", "build", "--release", "--quiet", "-p", "loadline-cli"], cwd=ROOT)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(target, "release/loadline")


def fetch(directory):
    """GCViewer's jar, or None with the reason on stderr."""
    try:
        run(["mvn", "-q", "dependency:copy", f"-Dartifact={GCVIEWER}",
             f"-DoutputDirectory={directory}"], cwd=directory)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"SKIP gcviewer: {error}", file=sys.stderr)
        return None
    return glob.glob(os.path.join(directory, "gcviewer*.jar"))[0]


def javas():
    homes = [os.environ.get("JAVA_HOME")] + sorted(glob.glob("/usr/lib/jvm/*"))
    found = {}
    for home in filter(None, homes):
        java = os.path.realpath(os.path.join(home, "bin/java"))
        release = os.path.join(home, "release")
        if os.access(java, os.X_OK) and os.path.exists(release):
            version = re.search(r'JAVA_VERSION="(\d+)', open(release).read())
            if version and int(version[1]) >= 11:
                found.setdefault(java, version[1])
    return found


def make_logs(directory, seconds):
    for java, version in javas().items():
        for collector in COLLECTORS:
            log = os.path.join(directory, f"{version}-{collector}.log")
            command = [java, "-Xms96m", "-Xmx96m", f"-XX:+Use{collector}GC",
                       f"-Xlog:gc*,safepoint:file={log}:u,l,tg:filecount=0",
                       PROGRAM, str(seconds * 1000), "24", "0"]
            # A JVM without this collector ends at once; there is no log then.
            subprocess.run(command, capture_output=True)
            if os.path.exists(log) and os.path.getsize(log) > 100_000:
                yield log


def measure(command):
    """CPU and wall seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, done.stdout


def loadline(binary, log):
    cpu, wall, text = measure([binary, "gc", "--json", log])
    count = re.search(r'"stw":\{"count":(\d+)', text)
    return cpu, wall, count[1] if count else "-"


def gcviewer(jar, log, directory):
    summary = os.path.join(directory, "summary.csv")
    if os.path.exists(summary):
        os.remove(summary)
    cpu, wall, _ = measure(["java", "-jar", jar, log, summary, "-t", "SUMMARY"])
    if not os.path.exists(summary):
        return cpu, wall, "-"
    counts = re.findall(r"^(?:gcPauseCount|fullGCPauseCount); ?(\d+)", open(summary).read(), re.M)
    return cpu, wall, str(sum(map(int, counts)))


def row(name, log, runs):
    size = os.path.getsize(log) / 1e6
    cpu = statistics.median(r[0] for r in runs)
    wall = statistics.median(r[1] for r in runs)
    return (f"{os.path.basename(log):<24} {size:>7.2f} {name:<9} {size / cpu:>9.1f} "
            f"{size / wall:>9.1f} {runs[0][2]:>9}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--gcviewer", metavar="JAR")
    parser.add_argument("logs", nargs="*", metavar="LOG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        binary = build()
        jar = options.gcviewer or fetch(directory)
        logs = options.logs or list(make_logs(directory, options.seconds))
        print(f"{'log':<24} {'MB':>7} {'reader':<9} {'MB/s CPU':>9} {'MB/s wall':>9} {'pauses':>9}")
        for log in logs:
            ours, theirs = [], []
            for _ in range(options.pairs):
                ours.append(loadline(binary, log))
                if jar:
                    theirs.append(gcviewer(jar, log, directory))
            print(row("loadline", log, ours))
            if theirs:
                print(row("GCViewer", log, theirs))


if __name__ == "__main__":
    main()
