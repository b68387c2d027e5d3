#!/usr/bin/env python3
"""What load generators report when a server stalls, or is slow for one request in a hundred.

Usage: benches/omission.py [--test stall|slow] [--connections 10,100,512] [--rivals wrk,ab]

Stall: the server sleeps 2 s, 10 s into a run of 20 s at 1000/s; with uniform arrivals the formula
gives p95 1000, p99 1800, p99.9 1980, max 2000 ms. Slow: every 100th request takes 500 ms; the
others must not wait (p95 below 1 ms, max near 500 ms). wrk and ab know no rate: they run closed.
"""

import argparse
import json
import re
import shutil
import subprocess
import time

from load import PORT, URL, build, run

SETTINGS = {
    "stall": (["stall-at-ms=10000", "stall-ms=2000"], 20),
    "slow": (["slow-every=100", "slow-ms=500"], 10),
}


def loadline(binary, connections, seconds):
    output, _, _ = run([binary, "load", URL, "--rate", "1000/s", "-c", str(connections),
                        "-d", f"{seconds}s", "--cpus", "1", "--json"])
    result = json.loads(output)
    latency = result["latency_us"]
    figures = [latency[name] / 1e3 for name in ["p50", "p95", "p99", "p99_9", "max"]]
    return figures, result["saturated"] or f"{result['ok']} good"


def wrk(_, connections, seconds):
    output, _, _ = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", URL])
    scale = {"us": 1e-3, "ms": 1.0, "s": 1e3}

    def value(pattern):
        found = re.search(pattern, output)
        return float(found.group(1)) * scale[found.group(2)] if found else None
    at = r"{}%\s+([\d.]+)(us|ms|s)"
    return [value(at.format("50")), None, value(at.format("99")), None,
            value(r"Latency\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)")], "closed"


def ab(_, connections, seconds):
    output, _, _ = run(["ab", "-q", "-k", "-c", str(connections), "-t", str(seconds),
                        "-n", "100000000", URL])

    def value(percent):
        found = re.search(rf"{percent}%\s+(\d+)", output)
        return float(found.group(1)) if found else None
    return [value(50), value(95), value(99), None, value(100)], "closed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", default="stall", choices=SETTINGS)
    parser.add_argument("--connections", default="10,100,512")
    parser.add_argument("--rivals", default="")
    arguments = parser.parse_args()
    binary, rig = build()
    tools = [("loadline", lambda c, s: loadline(binary, c, s))]
    for name in filter(None, arguments.rivals.split(",")):
        if shutil.which(name):
            tools.append((name, lambda c, s, f=globals()[name]: f(None, c, s)))
        else:
            print(f"SKIP {name}: not installed")
    behaviour, seconds = SETTINGS[arguments.test]
    print("tool      conns       p50       p95       p99     p99.9       max  (ms)")
    for connections in arguments.connections.split(","):
        for name, tool in tools:
            server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT), *behaviour],
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            time.sleep(0.3)
            figures, remark = tool(int(connections), seconds)
            server.stdin.close()
            server.wait()
            cells = "".join("         -" if f is None else f"{f:10.2f}" for f in figures)
            print(f"{name:9} {connections:>4} {cells}  {remark}", flush=True)


if __name__ == "__main__":
    main()
