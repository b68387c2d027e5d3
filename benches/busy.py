#!/usr/bin/env python3
"""Whether `make demo` finds the same size on a machine that others use.

Usage: benches/busy.py [--tries 20] [--quiet MIB] [--loadline PROGRAM]

One search runs undisturbed first (or `--quiet` gives its answer). Then each try is the same search next
to one of three disturbers, in turn: a program that takes 30 % of the machine, one that takes all of it
for 10 s of every 30 s, and a build (`cargo build` of one crate, again and again). Prints for each try
its time, the answer, and how many trials were disturbed, kept and voided; at the end how many answers
are within 8 % of the undisturbed one.
Needs root, target/release/loadline, build/workloads/spring-web.jar, and cargo.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time

BUSY = "while :; do :; done"
THIRD = f"import os, time\nshare = 0.3 * {os.cpu_count()}\nwhile True:\n" \
    "    until = time.time() + 0.1 * min(share, 1)\n    while time.time() < until: pass\n" \
    "    time.sleep(0.1 * (1 - min(share, 1)))\n"
DISTURBERS = {
    "30 %": ["python3", "-c", THIRD],
    "comes and goes": ["sh", "-c", f"while :; do for _ in $(seq {os.cpu_count()}); do "
                       f"timeout 10 sh -c '{BUSY}' & done; wait; sleep 20; done"],
    "a build": ["sh", "-c", "while :; do rm -rf build/bench-target; "
                "cargo build -q --target-dir build/bench-target -p loadline-analysis; done"],
}


def search(arguments):
    """One demo: seconds, and its result."""
    command = [
        arguments.loadline, "size", "--wait", "--json", "--state", arguments.state, "--cpu", "1",
        "--jvm", "c1: -XX:TieredStopAtLevel=1", "--slo", "p99<250ms,errors<1%", "--rate", "100/s",
        "--warm-up", "2s", "--duration", "4s", "--min-memory", "128Mi", "--max-memory", "512Mi",
        "--ready", "/health", "--url", "http://localhost:8080/owners?lastName=Da",
        "--", "java", "-jar", "build/workloads/spring-web.jar",
    ]
    begin = time.time()
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    result = json.loads(ran.stdout) if ran.stdout else {}
    return time.time() - begin, result


def size(result):
    """The answer in MiB, or None."""
    configuration = (result.get("recommendation") or {}).get("configuration")
    return configuration["memory_bytes"] >> 20 if configuration else None


def counts(result):
    """Trials, those that kept the SLO although disturbed, and those without a verdict."""
    trials = result.get("trials", [])
    kept = sum(t["verdict"]["class"] == "pass" and "although" in str(t["reason"]) for t in trials)
    void = sum(t["verdict"]["class"] == "invalid" for t in trials)
    return f"{len(trials)} trials, {kept} disturbed and kept, {void} void"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--quiet", type=int)
    parser.add_argument("--loadline", default="target/release/loadline")
    arguments = parser.parse_args()
    arguments.state = tempfile.mkdtemp(prefix="loadline-busy-")
    quiet = arguments.quiet or size(search(arguments)[1])
    print(f"undisturbed: {quiet}Mi", flush=True)
    near, none = 0, 0
    for number in range(arguments.tries):
        name = list(DISTURBERS)[number % len(DISTURBERS)]
        other = subprocess.Popen(DISTURBERS[name], start_new_session=True)
        try:
            took, result = search(arguments)
        finally:
            os.killpg(other.pid, signal.SIGKILL)
            other.wait()
        found = size(result)
        near += found is not None and abs(found - quiet) <= 0.08 * quiet
        none += found is None
        print(f"{name}: {took:.0f} s, {found}Mi, {counts(result)}", flush=True)
    print(f"{near} of {arguments.tries} within 8 %, {none} without an answer")


main()
