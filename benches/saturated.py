#!/usr/bin/env python3
"""How often a run says that the generator was itself the bottleneck, when it was and when not.

Usage: benches/saturated.py [--runs 20] [--seconds 2] [--rate 5000] [--cases clean,hog,throttled]

Clean: server on CPU 0, generator alone on CPU 1. Hog: two busy loops share the generator's CPU.
Throttled: the generator runs in a cgroup of its own with 10 % of a CPU (needs root and a cgroup cpu
controller). Every run of the last two must be flagged, none of the first. A clean run that some
other program disturbed is flagged rightly: look at the reason that is printed.
"""

import argparse
import json
import os
import subprocess
import time

from load import PORT, URL, build

GROUP = "loadline-bench-saturated"


def cpu_group():
    """A new cgroup with a quota of 10 ms in 100 ms: its folder, or None where that cannot be."""
    for root, files in [("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000",
                                                "cpu.cfs_quota_us": "10000"}),
                        ("/sys/fs/cgroup", {"cpu.max": "10000 100000"})]:
        path = os.path.join(root, GROUP)
        try:
            os.makedirs(path, exist_ok=True)
            for name, value in files.items():
                with open(os.path.join(path, name), "w", encoding="ascii") as file:
                    file.write(value)
            return path
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
    return None


def generate(binary, arguments, group=None):
    def enter():
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
    command = ["taskset", "-c", "1", binary, "load", URL, "--rate", f"{arguments.rate}/s",
               "-d", f"{arguments.seconds}s", "--timeout", "2s", "--cpus", "1", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          preexec_fn=enter, check=False)
    return json.loads(done.stdout)["saturated"], done.returncode


def case(name, binary, arguments):
    hogs, group = [], None
    if name == "throttled":
        group = cpu_group()
        if group is None:
            print("SKIP throttled: no cgroup with a cpu quota can be made here")
            return
    if name == "hog":
        hogs = [subprocess.Popen(["taskset", "-c", "1", "sh", "-c", "while :; do :; done"])
                for _ in range(2)]
    reasons = []
    try:
        for _ in range(arguments.runs):
            reason, code = generate(binary, arguments, group)
            assert (reason is not None) == (code == 4), (reason, code)
            reasons.append(reason)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        if group:
            os.rmdir(group)
    flagged = [r for r in reasons if r]
    print(f"{name:10} flagged {len(flagged):3} of {len(reasons)}", flush=True)
    for reason in sorted(set(flagged))[:3]:
        print(f"           {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--cases", default="clean,hog,throttled")
    arguments = parser.parse_args()
    binary, rig = build()
    server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT)], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        for name in arguments.cases.split(","):
            case(name, binary, arguments)
    finally:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
