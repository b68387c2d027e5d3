#!/usr/bin/env python3
"""Soaks of a service that loses a known amount a request: part and rate against the truth.

Usage: benches/soak.py [--for 15m] [--only heap,direct,malloc,threads,healthy] [--rate 200/s]

Uses the loadline of CARGO_TARGET_DIR (debug unless LOADLINE names another) and
build/workloads/leak.jar (`make workloads`). Each run is a `size` of one trial and a `soak` of its
answer. Prints a row a run: the part that is named, bytes (or threads) per million requests and
the truth. A part that is not named, or a rate off by more than 15 %, is a miss; exit code 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
LOADLINE = os.environ.get("LOADLINE", os.path.join(TARGET, "debug", "loadline"))
MILLION = 1_000_000
# zlib's deflate with its defaults (zconf.h) and its state.
DEFLATER = 262_144 + 6_000

# Name, options of the service, field of the looks, truth per request.
RUNS = {
    "heap": (["--heap=1000"], "live_heap_bytes", 1000 + 16 + 24),
    "direct": (["--direct=2048"], "direct_bytes", 2048),
    "malloc": (["--malloc-every=100"], "malloc_bytes", DEFLATER / 100),
    "threads": (["--thread-every=200"], "threads", 1 / 200),
    "healthy": ([], None, 0),
}
NAMES = {"direct": "direct buffers"}


def loadline(state, *arguments):
    return subprocess.run([LOADLINE, arguments[0], "--state", state, *arguments[1:]],
                          capture_output=True, text=True, check=False)


def soak(name, options, length, rate):
    """The sentence of the soak and its three looks."""
    with tempfile.TemporaryDirectory() as state:
        sized = loadline(
            state, "size", "--wait", "--accept-noise", "--slo", "errors<50%", "--rate", rate,
            "--warm-up", "10s", "--measure", "2s", "--cpu", "1", "--min-memory", "636Mi",
            "--max-memory", "640Mi", "--confirm", "1", "--prove", "1",
            "--url", "http://localhost:8080/", "--", "java", "-XX:+UseSerialGC", "-jar",
            os.path.join(ROOT, "build", "workloads", "leak.jar"), *options)
        if sized.returncode != 0:
            sys.exit(f"{name}: size ended with {sized.returncode}: {sized.stderr}")
        soaked = loadline(state, "soak", "--wait", "--for", length, "--json")
        result = json.loads(soaked.stdout)
        text = loadline(state, "show").stdout
    sentence = re.search(r"What grows over time\n(.*?\.)\n", text, re.S)
    trial = [t for t in result["trials"] if t["purpose"] == "soak"][-1]
    words = " ".join(sentence.group(1).split()) if sentence else text
    return words, trial["evidence"]["soak"]["looks"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--for", dest="length", default="15m")
    parser.add_argument("--only", default=",".join(RUNS))
    parser.add_argument("--rate", default="200/s")
    given = parser.parse_args()
    missed = 0
    print(f"{'lost':<8} {'per million':>14} {'truth':>14} {'off':>7}  said")
    for name in given.only.split(","):
        options, field, truth = RUNS[name]
        words, looks = soak(name, options, given.length, given.rate)
        if field is None:
            missed += "Growing" in words
            print(f"{name:<8} {'':>14} {0:>14} {'':>7}  {words}", flush=True)
            continue
        requests = looks[2]["requests"] - looks[1]["requests"]
        rate = (looks[2][field] - looks[1][field]) / requests * MILLION
        off = rate / (truth * MILLION) - 1
        missed += abs(off) > 0.15 or NAMES.get(name, name) not in words
        print(f"{name:<8} {rate:>14.0f} {truth * MILLION:>14.0f} {off:>+7.1%}  {words}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
