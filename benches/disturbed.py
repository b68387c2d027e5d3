#!/usr/bin/env python3
"""Whether a search for the cheapest deployment is misled by a machine that others use.

Usage: benches/disturbed.py [--tries 20] [--share 0.2] [--seed 1] [--budget SECONDS]
                            [--work ROUNDS] [--rate 150/s]

A request takes some 2 ms of CPU time, so that two quarters of a CPU carry the rate easily, one is
overloaded, and the right answer is clear. One search runs undisturbed and says what it is. Then
each try is the same search, with busy loops on every CPU during a share of its trials, drawn at
random. Prints for each try the answer, how many trials were disturbed and how many of them loadline
called INVALID; at the end how many tries had the same answer, said that something could not be
measured, or were wrong without a word.
Needs root, target/release/loadline, build/workloads/ping.jar and a quiet machine.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

SIZES = "0.25/512Mi,0.5/2Gi"


class Hog:
    """A busy loop on every CPU, until it is ended."""

    def __init__(self):
        loop = ["sh", "-c", "while :; do :; done"]
        cpus = range(os.cpu_count())
        self.loops = [subprocess.Popen(["taskset", "-c", str(cpu), *loop]) for cpu in cpus]

    def end(self):
        for loop in self.loops:
            loop.kill()
            loop.wait()


def search(arguments, state, share, draw):
    """One search: its result, and how many trials were disturbed."""
    command = [
        arguments.loadline, "size", "--state", state, "--json", "--prices", "fargate",
        "--sizes", SIZES, "--replicas", "1..4", "--rate", arguments.rate, "--prove", "2",
        "--slo", "p99<300ms,errors<1%", "--warm-up", "1s", "--duration", "3s",
        "--ready", "/health", "--url", "http://localhost:8080/", "--",
        "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", "build/workloads/ping.jar",
        "--port=8080", f"--work-rounds={arguments.work}",
    ]
    # A file: a pipe would be full before anybody reads it.
    result = tempfile.TemporaryFile(mode="w+", encoding="utf-8")
    process = subprocess.Popen(command, stdout=result, stderr=subprocess.PIPE, text=True)
    disturbed, hog = 0, None
    # A line when a trial has ended: what follows is the next one.
    for line in process.stderr:
        if arguments.verbose:
            print("   ", line.rstrip(), flush=True)
        if hog:
            hog.end()
            hog = None
        if draw.random() < share:
            disturbed += 1
            hog = Hog()
    if hog:
        hog.end()
    process.wait()
    result.seek(0)
    return json.load(result), disturbed


def answer(result):
    """The deployment in a line, or why there is none."""
    deployment = (result.get("recommendation") or {}).get("deployment")
    if not deployment:
        return None
    chosen = deployment["chosen"]
    limits = chosen["limits"]
    return (f"{chosen['replicas']} x {limits['cpu_millicpus']}m/"
            f"{limits['memory_bytes'] >> 20}Mi")


def is_said(result):
    """Whether the result says itself that a size could not be measured."""
    deployment = (result.get("recommendation") or {}).get("deployment") or {"left_out": []}
    return any("could not be measured" in line for line in deployment["left_out"])


def kind_of(result, expected):
    found = answer(result)
    if found == expected:
        return "same"
    return "said so" if found is None or is_said(result) else "wrong"


def invalid(result):
    verdicts = [trial["verdict"]["class"] for trial in result["trials"]]
    return sum(verdict == "invalid" for verdict in verdicts), len(verdicts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9,
                        help="begin no search after so many seconds")
    parser.add_argument("--work", default="1500000")
    parser.add_argument("--rate", default="150/s")
    parser.add_argument("--loadline", default="target/release/loadline")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    start = time.monotonic()
    counts = {"same": 0, "said so": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as state:
        right, _ = search(arguments, state, 0, draw)
        expected = answer(right)
        print(f"undisturbed: {expected}, {invalid(right)[1]} trials", flush=True)
        if expected is None:
            sys.exit("the undisturbed search has no answer to compare with")
        for number in range(1, arguments.tries + 1):
            if time.monotonic() - start > arguments.budget:
                print(f"the budget ended before try {number}")
                break
            result, disturbed = search(arguments, state, arguments.share, draw)
            bad, trials = invalid(result)
            found = answer(result)
            kind = kind_of(result, expected)
            counts[kind] += 1
            print(f"{number}: {found or result.get('incomplete') or 'no answer'}, {trials} trials, {disturbed} disturbed, "
                  f"{bad} INVALID: {kind}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
