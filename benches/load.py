#!/usr/bin/env python3
"""Cost of the load generator beside others: CPU per request and achieved rate, side by side.

Usage: benches/load.py [--pairs 6] [--seconds 4] [--connections 100,512] [--rivals wrk,ab]
                       [--skip-install]

Builds loadline and the test server (release), installs wrk from the distribution's packages when
it is missing, and runs loadline and each rival in turn against the same server: server pinned to
CPU 0, generator to CPU 1, one thread each, closed model, GET, 14-byte answer, keep-alive. CPU is
the rusage (user + system) of the whole generator process, start included. The ratio is taken
within each pair; its median is printed with a 95 % bootstrap interval. A rival that is not there
is named as skipped.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PORT = 18080
URL = f"http://127.0.0.1:{PORT}/"


def build():
    command = ["cargo", "build", "--release", "--quiet", "-p", "loadline-cli", "-p", "loadline-load",
               "--bin", "loadline", "--example", "rig"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    release = os.path.join(target, "release")
    return os.path.join(release, "loadline"), os.path.join(release, "examples", "rig")


def run(command):
    """Runs a command on CPU 1; returns its output, CPU seconds and wall seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", "1", *command], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def loadline(binary, connections, seconds):
    output, cpu, _ = run([binary, "load", URL, "--closed", "-c", str(connections),
                          "-d", f"{seconds}s", "--cpus", "1", "--json"])
    result = json.loads(output)
    assert result["errors"] == 0, result
    return cpu / result["ok"] * 1e6, result["achieved_rate"]


def wrk(connections, seconds):
    output, cpu, _ = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", URL])
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return cpu / requests * 1e6, rate


def ab(connections, seconds):
    output, cpu, wall = run(["ab", "-q", "-k", "-c", str(connections), "-t", str(seconds),
                             "-n", "100000000", URL])
    requests = int(re.search(r"Complete requests:\s+(\d+)", output).group(1))
    return cpu / requests * 1e6, requests / wall


RIVALS = {"wrk": wrk, "ab": ab}


def interval(values):
    """95 % bootstrap interval of the median."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(5000))
    return medians[125], medians[4875]


def compare(name, binary, connections, arguments):
    ours, theirs = [], []
    for _ in range(arguments.pairs):
        ours.append(loadline(binary, connections, arguments.seconds))
        theirs.append(RIVALS[name](connections, arguments.seconds))
    for what, index in [("CPU us/request", 0), ("requests/s", 1)]:
        ratios = [a[index] / b[index] for a, b in zip(ours, theirs)]
        low, high = interval(ratios)
        print(f"{connections:4} connections  {what:15} loadline "
              f"{statistics.median(a[index] for a in ours):10.2f}  {name} "
              f"{statistics.median(b[index] for b in theirs):10.2f}  ratio "
              f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] n={len(ratios)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", default="100,512")
    parser.add_argument("--rivals", default="wrk")
    parser.add_argument("--skip-install", action="store_true")
    arguments = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        sys.exit("it needs two CPUs: one for the server, one for the generator")
    binary, rig = build()
    if not shutil.which("wrk") and not arguments.skip_install:
        subprocess.run(["apt-get", "install", "-y", "-qq", "wrk"], check=False,
                       stdout=subprocess.DEVNULL)
    server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT)], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        for name in arguments.rivals.split(","):
            if not shutil.which(name):
                print(f"SKIP {name}: not installed")
                continue
            for connections in arguments.connections.split(","):
                compare(name, binary, int(connections), arguments)
    finally:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
