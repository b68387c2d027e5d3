#!/usr/bin/env python3
"""Whether a replayed log arrives as it was recorded: requests per second, as the server sees them.

Usage: benches/replay.py [--speeds 1,5] [--seconds 30] [--skip-build]

Writes an access log whose rate changes every second, makes a profile of it with a resolution of one
second, replays it at each speed against a server that logs arrivals, and compares the counts of
each (shortened) second with those of the log. Server on CPU 0, generator on CPU 1.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

from load import PORT, URL, build, run

BEGIN = 1795132800  # 2026-11-20 00:00:00 UTC


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speeds", default="1,5")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    binary, rig = build(arguments.skip_build)
    counts = [200 + (s * 37 % 11) * 80 for s in range(arguments.seconds)]
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "access.log")
        with open(log, "w", encoding="ascii") as file:
            for second, count in enumerate(counts):
                stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(BEGIN + second))
                file.write(f'::1 - - [{stamp}] "GET / HTTP/1.1" 200 14\n' * count)
        profile = os.path.join(folder, "profile.toml")
        text, _, _ = run([binary, "profile", "--server", "httpd", "--interval", "1", log])
        with open(profile, "w", encoding="utf-8") as file:
            file.write(text)
        for speed in map(int, arguments.speeds.split(",")):
            replay(binary, rig, profile, speed, counts)


def replay(binary, rig, profile, speed, counts):
    """A replay at `speed` keeps the rates: each second of the log has 1/speed of its requests."""
    server = subprocess.Popen(["taskset", "-c", "0", rig, str(PORT), f"bins-ms={1000 / speed}"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    output, _, _ = run([binary, "load", URL, "--profile", profile, "--speed", str(speed),
                        "--scale", str(speed), "--cpus", "1", "--json"])
    seen = json.loads(server.communicate()[0])
    result = json.loads(output)
    # An arrival at the very end of a second may be seen in the next one.
    off = [abs(a - b) for a, b in zip(seen, counts)]
    print(f"x{speed}: {sum(seen)} of {sum(counts)} requests in {len(seen)} seconds of the log; "
          f"largest distance of a second {max(off)} ({max(o / c for o, c in zip(off, counts)):.2%}),"
          f" {result['saturated'] or 'generator in time'}", flush=True)


if __name__ == "__main__":
    main()
