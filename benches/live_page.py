#!/usr/bin/env python3
"""What the live page takes of the machine while a run is measured.

Usage: benches/live_page.py [--seconds 60] [--pages 1] [--loadline target/release/loadline]

Runs the workload ping under a load of 200 requests a second, starts `loadline serve` beside it, and
reads the stream of events as so many open pages do. Prints the CPU time that the server took, user
and system, as a share of one core: with no page open, then with the pages. Without a page it shall be
nothing; with one less than 0.5 % (docs/specification/daily-loop.md, promise 160).
Needs root, build/workloads/ping.jar, and a quiet machine: on a busy one the same work takes more time.
"""

import argparse
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time


def cpu_seconds(pid):
    """User and system time of a process, all of its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def follow(address, token, stop, seen):
    """Reads the events as a page does, until told to stop."""
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    while not stop.is_set():
        line = answer.readline()
        if not line:
            break
        if line.startswith(b"event: now"):
            seen.append(time.monotonic())
    connection.close()


def share(server, seconds):
    """The share of one core that the server takes in so many seconds, in per cent."""
    begin, before = time.monotonic(), cpu_seconds(server.pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(server.pid) - before) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--loadline", default="target/release/loadline")
    arguments = parser.parse_args()
    state = tempfile.TemporaryDirectory(prefix="loadline-live-")
    # Long enough for both measurements, the start and the stream's first words.
    lasts = 2 * arguments.seconds + 30
    run = subprocess.Popen(
        [arguments.loadline, "run", "--state", state.name, "--memory", "256Mi", "--repeats", "1",
         "--slo", "p99<1s", "--rate", "200/s", "--warm-up", "1s", "--measure", f"{lasts}s",
         "--ready", "/health", "--url", "http://localhost:8080/", "--",
         "java", "-XX:+UseSerialGC", "-jar", "build/workloads/ping.jar", "--port=8080"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(10)
    if run.poll() is not None:
        sys.exit(f"the run ended: {run.stderr.read()}")
    server = subprocess.Popen(
        [arguments.loadline, "serve", "--state", state.name, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    stop, seen, pages = threading.Event(), [], []
    try:
        link = server.stdout.readline().strip().removeprefix("http://")
        address, token = link.split("/?token=")
        print(f"no page: {share(server, arguments.seconds):.2f} % of a core", flush=True)
        for _ in range(arguments.pages):
            pages.append(threading.Thread(target=follow, args=(address, token, stop, seen)))
            pages[-1].start()
        time.sleep(2)
        events = len(seen)
        taken = share(server, arguments.seconds)
        events = len(seen) - events
        print(f"{arguments.pages} page(s): {taken:.2f} % of a core, "
              f"{events / arguments.seconds / arguments.pages:.1f} events a second each")
        if events == 0 or run.poll() is not None:
            sys.exit("no event came: the run had ended, the figure says nothing")
    finally:
        stop.set()
        for process in (server, run):
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        for page in pages:
            page.join()
        state.cleanup()


if __name__ == "__main__":
    main()
