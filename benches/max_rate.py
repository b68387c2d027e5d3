#!/usr/bin/env python3
"""Whether the search for the highest rate finds the capacity of a server that has a known one.

Usage: benches/max_rate.py [--searches 10] [--capacity 800] [--trial 2] [--slo p99<50ms]
                           [--disturbed 0.1] [--seed 1] [--budget SECONDS] [--skip-build]

The server serves one request after the other, `capacity` a second, whatever the load. Prints for
each search the answer as a share of the capacity and the trials, then their spread (95th over 5th
percentile). With --disturbed, that share of the trials, chosen at random, is disturbed: the server
stands still for 0.4 s in every second, which no SLO here survives, and busy loops share both CPUs.
Server on CPU 0, generator on CPU 1.
"""

import argparse
import json
import random
import signal
import statistics
import subprocess
import time

from load import PORT, URL, build


class Disturbance:
    """Stops the server again and again, and keeps both CPUs busy, until it is ended."""

    def __init__(self, server):
        self.server = server
        pid = server.pid
        stops = f"while :; do kill -STOP {pid}; sleep 0.4; kill -CONT {pid}; sleep 0.6; done"
        self.programs = [subprocess.Popen(["sh", "-c", stops])]
        self.programs += [subprocess.Popen(["taskset", "-c", cpu, "sh", "-c",
                                            "while :; do :; done"]) for cpu in "01"]

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()
        self.server.send_signal(signal.SIGCONT)


def search(binary, arguments, draw, server):
    command = ["taskset", "-c", "1", binary, "load", URL, "--max-rate", "--slo", arguments.slo,
               "-d", f"{arguments.trial}s", "--cpus", "1", "-c", "50", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    disturbed, running = 0, None
    # The head, then a line when a trial has ended: what follows is the next trial.
    for _ in process.stderr:
        if running:
            running.end()
            running = None
        if draw.random() < arguments.disturbed:
            disturbed += 1
            running = Disturbance(server)
    if running:
        running.end()
    return json.loads(process.stdout.read()), disturbed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--capacity", type=float, default=800)
    parser.add_argument("--trial", type=int, default=2)
    parser.add_argument("--slo", default="p99<50ms")
    parser.add_argument("--disturbed", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9,
                        help="begin no search that would not end within so many seconds")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    binary, rig = build(arguments.skip_build)
    server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT),
                               f"capacity={arguments.capacity}"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    shares, trials, longest = [], [], 0
    start = time.monotonic()
    try:
        time.sleep(0.3)
        for _ in range(arguments.searches):
            begin = time.monotonic()
            if begin - start + longest > arguments.budget:
                break
            found, disturbed = search(binary, arguments, draw, server)
            longest = max(longest, time.monotonic() - begin)
            goal = found["goals"][0]
            share = (goal["rate"] or 0) / arguments.capacity
            shares.append(share)
            trials.append(len(found["trials"]))
            too_high = (goal["too_high"] or 0) / arguments.capacity
            why = found["incomplete"] or f"too high {too_high:.4f}: {goal['broke']}"
            invalid = sum(trial["saturated"] is not None for trial in found["trials"])
            print(f"{share:.4f} of the capacity, {len(found['trials'])} trials, {disturbed} "
                  f"disturbed, {invalid} no evidence, {time.monotonic() - begin:.0f} s; {why}",
                  flush=True)
    finally:
        server.stdin.close()
        server.wait()
    if len(shares) > 1:
        cuts = statistics.quantiles(shares, n=20, method="inclusive")
        print(f"{len(shares)} searches: {min(shares):.4f} to {max(shares):.4f}, median "
              f"{statistics.median(shares):.4f}, p95/p05 {cuts[-1] / cuts[0]:.4f}, trials "
              f"{min(trials)} to {max(trials)}")


if __name__ == "__main__":
    main()
