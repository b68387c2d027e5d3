#!/usr/bin/env python3
"""What load generators report when a server stalls, or is slow for one request in a hundred.

Usage: benches/omission.py [--test stall|slow] [--connections 10,100,512] [--rivals all|wrk,ab]
                           [--rival-connections 100] [--skip-loadline] [--skip-build]

Stall: the server sleeps S = 2 s, 10 s into a run of W = 20 s at R = 1000/s; with uniform arrivals
L(q) = S - (1 - q) W (1 - R / C): the C requests a second that the server can answer (measured
first, closed) work off what gathered in the stall. Slow: every 100th request takes 500 ms; the
others must not wait (p95 below 1 ms, max near 500 ms). Tools that know no rate run closed. The
column `off` is the largest distance from the formula.
"""

import argparse
import json
import subprocess
import time

from load import PORT, URL, Server, build, run
from rivals import RIVALS, installed

RATE = 1000
SETTINGS = {
    "stall": (["stall-at-ms=10000", "stall-ms=2000"], 20, None),
    "slow": (["slow-every=100", "slow-ms=500"], 10, [None, None, None, None, 500]),
}


def stalled(binary, rig):
    """The truth of the stall test, in ms: p50 (unknown), p95, p99, p99.9, max."""
    with Server([rig, str(PORT)]):
        output, _, _ = run([binary, "load", URL, "--closed", "-c", "100", "-d", "2s", "--cpus", "1",
                            "--json"])
    capacity = json.loads(output)["achieved_rate"]
    print(f"the server answers {capacity:.0f}/s", flush=True)
    backlog = 20000 * (1 - RATE / capacity)
    return [None] + [2000 - (1 - q) * backlog for q in (0.95, 0.99, 0.999, 1)]


def loadline_with(binary):
    def measure(connections, seconds, rate):
        output, _, _ = run([binary, "load", URL, "--rate", f"{rate}/s", "-c", str(connections),
                            "-d", f"{seconds}s", "--cpus", "1", "--json"])
        result = json.loads(output)
        latency = result["latency_us"]
        figures = [latency[name] / 1e3 for name in ["p50", "p95", "p99", "p99_9", "max"]]
        return figures, result["saturated"] or f"rate, {result['ok']} good"
    return measure


def row(rig, behaviour, name, tool, connections, seconds, truth):
    server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT), *behaviour],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        figures, remark = tool(connections, seconds, RATE)
    finally:
        server.stdin.close()
        server.wait()
    cells = "".join("         -" if f is None else f"{f:10.2f}" for f in figures)
    known = [(f, t) for f, t in zip(figures, truth) if f is not None and t is not None]
    off = max((abs(f / t - 1) * 100 for f, t in known), default=0)
    print(f"{name:10} {connections:>4} {cells}   {off:5.1f} %  {remark}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", default="stall", choices=SETTINGS)
    parser.add_argument("--connections", default="10,100,512")
    parser.add_argument("--rivals", default="all")
    parser.add_argument("--rival-connections", default="100")
    parser.add_argument("--skip-loadline", action="store_true")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    binary, rig = build(arguments.skip_build)
    names = list(RIVALS) if arguments.rivals == "all" else arguments.rivals.split(",")
    rivals = installed(filter(None, names))
    behaviour, seconds, truth = SETTINGS[arguments.test]
    truth = truth or stalled(binary, rig)
    print("tool      conns       p50       p95       p99     p99.9       max      off  (ms)")
    print("formula        " + "".join("         -" if t is None else f"{t:10.2f}" for t in truth))
    runs = [] if arguments.skip_loadline else [
        ("loadline", loadline_with(binary), c) for c in arguments.connections.split(",")]
    runs += [(name, tool, c) for c in filter(None, arguments.rival_connections.split(","))
             for name, tool in rivals.items()]
    for name, tool, connections in runs:
        row(rig, behaviour, name, tool, int(connections), seconds, truth)


if __name__ == "__main__":
    main()
