#!/usr/bin/env python3
"""How often a run says that the generator was itself the bottleneck, when it was and when not.

Usage: benches/saturated.py [--runs 20] [--seconds 2] [--rate 5000] [--cases clean,hog,throttled]
                           [--fifo] [--skip-build]

Clean: server on CPU 0, generator alone on CPU 1. Hog: two busy loops share the generator's CPU.
Throttled: the generator runs in a cgroup of its own with 10 % of a CPU (needs root and a cgroup cpu
controller). Every run of the last two must be flagged, none of the first. A clean run that some
other program or the hypervisor disturbed is flagged rightly: for flagged runs it is printed how long
others had CPU 1 (interrupts included) and how long the hypervisor kept it from the machine, as far
as it says so (in /proc/stat, in ticks of 10 ms). With --fifo the generator of clean runs has
real-time priority, so that only the hypervisor is left.
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


def ticks():
    """Time of CPU 1 so far: spent by anything, and taken by the hypervisor, in s."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = next(line for line in file if line.startswith("cpu1 ")).split()[1:]
    user, nice, system, _, _, interrupts, soft, stolen = map(int, fields[:8])
    per_second = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + interrupts + soft) / per_second, stolen / per_second


def generate(binary, arguments, group=None, priority=()):
    def enter():
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
    command = ["taskset", "-c", "1", *priority, binary, "load", URL, "--rate",
               f"{arguments.rate}/s", "-d", f"{arguments.seconds}s", "--timeout", "2s", "--cpus",
               "1", "--json"]
    before = ticks()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          preexec_fn=enter, check=False)
    spent, stolen = (b - a for a, b in zip(before, ticks()))
    result = json.loads(done.stdout)
    others = max(spent - result["cpu_seconds"], 0)
    lag = result["send_lag_us"]
    return result["saturated"], done.returncode, (
        f"largest lag {lag['max'] / 1e3:.1f} ms; others had CPU 1 for {others * 1e3:.0f} ms, the "
        f"hypervisor for {stolen * 1e3:.0f} ms")


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
    flagged = []
    priority = ["chrt", "--fifo", "1"] if name == "clean" and arguments.fifo else []
    try:
        for _ in range(arguments.runs):
            reason, code, about = generate(binary, arguments, group, priority)
            assert (reason is not None) == (code == 4), (reason, code)
            if reason:
                flagged.append(f"{reason}; {about}")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        if group:
            os.rmdir(group)
    print(f"{name:10} flagged {len(flagged):3} of {arguments.runs}", flush=True)
    for reason in flagged if name == "clean" else flagged[:3]:
        print(f"           {reason}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--cases", default="clean,hog,throttled")
    parser.add_argument("--fifo", action="store_true")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    binary, rig = build(arguments.skip_build)
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
