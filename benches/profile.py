#!/usr/bin/env python3
"""Access logs to a profile: speed, memory, and whether the truth comes back.

Usage: benches/profile.py [--lines 1000000] [--runs 5] [--formats combined,nginx,json]
                          [--stream GB] [--skip-build]

Writes a log of known requests in each format (one day, 12 classes with weights, five statuses),
reads it with `loadline profile` several times, and prints lines and MB a second of CPU time
(median), the peak memory for this log and for one four times as long, and how far the rates, the
weights and the statuses are from the truth. goaccess runs beside it when it is installed.

With --stream 10, a combined log of 10 GB that covers a week comes through a named pipe instead, and
the resident memory is printed as it goes.
"""

import argparse
import fcntl
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import tomllib

from load import build

BEGIN = 1795132800  # 2026-11-20 00:00:00 UTC
CLASSES = [("GET", "/owners/{}", 30), ("GET", "/owners?lastName=D{}", 20), ("GET", "/", 10),
           ("GET", "/vets", 8), ("GET", "/owners/{}/pets/{}", 8), ("GET", "/css/site.css", 6),
           ("GET", "/api/v1/orders/{}", 5), ("HEAD", "/health", 5), ("GET", "/img/logo.png", 3),
           ("GET", "/search?q=x{}&page=2", 3), ("GET", "/about", 1), ("GET", "/contact", 1)]
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0"


def common(r, at):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    return (f'2001:db8::{r["id"] % 250:x} - - [{stamp}] "{r["method"]} {r["path"]} HTTP/1.1" '
            f'{r["status"]} {r["bytes"]}')


def combined(r):
    return f'{common(r, r["at"])} "https://example.org/start" "{AGENT}"'


def nginx(r):
    return (f'{common(r, r["at"] + r["ms"] / 1e3)} "https://example.org/start" "{AGENT}" '
            f'{r["ms"] / 1e3:.3f}')


def tomcat9(r):
    return f'{common(r, r["at"] + r["ms"] / 1e3)} {r["ms"]}'


def tomcat10(r):
    return f'{common(r, r["at"] + r["ms"] / 1e3)} {r["ms"] * 1000}'


def as_json(r):
    return (f'{{"msec": "{r["at"] + r["ms"] / 1e3:.3f}", "request": "{r["method"]} {r["path"]} '
            f'HTTP/1.1", "status": "{r["status"]}", "body_bytes_sent": {r["bytes"]}, '
            f'"request_time": "{r["ms"] / 1e3:.3f}", "http_user_agent": "{AGENT}"}}')


VALVE = '%h %l %u %t "%r" %s %b %D'
NGINX = ('$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
         '"$http_referer" "$http_user_agent" $request_time')
FORMATS = {
    "combined": (combined, ["--server", "httpd"]),
    "nginx": (nginx, ["--server", "nginx", "--format", NGINX]),
    "tomcat9": (tomcat9, ["--server", "tomcat9", "--format", VALVE]),
    "tomcat10": (tomcat10, ["--server", "tomcat10", "--format", VALVE]),
    "json": (as_json, ["--server", "nginx", "--format", "json"]),
}


def requests(lines):
    """Requests of one day, three times as many at noon as at midnight, in the order they end."""
    draw = random.Random(7)
    hours = [1 + 2 * min(h, 24 - h) / 12 for h in range(24)]
    hour_of = draw.choices(range(24), hours, k=lines)
    kinds = draw.choices(CLASSES, [c[2] for c in CLASSES], k=lines)
    made = []
    for hour, (method, path, _) in zip(hour_of, kinds):
        number = draw.randrange(100000)
        made.append({"at": BEGIN + hour * 3600 + draw.randrange(3600000) / 1e3, "id": number,
                     "method": method, "path": path.format(number, number % 10),
                     "name": f"{method} " + path.replace("{}", "{id}").replace("=D{id}", "")
                     .replace("=x{id}", "").replace("=2", ""),
                     "status": draw.choices([200, 304, 404, 500, 302], [90, 5, 3, 1, 1])[0],
                     "bytes": draw.randrange(20000), "ms": int(draw.lognormvariate(3, 1.2))})
    made.sort(key=lambda r: r["at"] + r["ms"] / 1e3)
    return made


# A small process starts the program: the peak memory of a program counts what its parent had.
START = """import os, sys
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, _, usage = os.wait4(process, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, file=sys.stderr)"""


def profile(binary, arguments, logs):
    """Runs it on CPU 1; returns the output, CPU seconds and the peak memory in MB."""
    command = [sys.executable, "-ISc", START, "taskset", "-c", "1", binary, "profile", *arguments]
    done = subprocess.run([*command, *logs], capture_output=True, text=True, check=True)
    cpu, memory = done.stderr.splitlines()[-1].split()
    return done.stdout, float(cpu), float(memory)


def stream(binary, log, gigabytes, folder):
    """Reads a log of one day again and again through a pipe, as the days of one week."""
    with open(log, "rb") as file:
        day = file.read()
    total = max(7, round(gigabytes * 1e9 / len(day)))
    pipe = os.path.join(folder, "pipe.log")
    if os.path.exists(pipe):
        os.unlink(pipe)
    os.mkfifo(pipe)
    with open(os.path.join(folder, "profile.toml"), "w", encoding="utf-8") as output:
        process = subprocess.Popen(["taskset", "-c", "1", binary, "profile", "--server", "httpd",
                                    pipe], stdout=output, stderr=subprocess.PIPE, text=True)
    begin, marks = time.monotonic(), []
    with open(pipe, "wb", buffering=0) as end:
        os.unlink(pipe)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20)
        for nth in range(total):
            rest = memoryview(day.replace(b"[20/Nov", f"[{20 + nth * 7 // total}/Nov".encode()))
            while rest:
                rest = rest[end.write(rest[:1 << 20]):]
            if nth * 10 // total != (nth + 1) * 10 // total:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                    status = dict(line.split(":", 1) for line in file)
                marks.append(int(status["VmRSS"].split()[0]) / 1024)
                peak = int(status["VmHWM"].split()[0]) / 1024
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, said
    size, cpu = total * len(day) / 1e9, usage.ru_utime + usage.ru_stime
    print(f"stream of {size:.1f} GB in {time.monotonic() - begin:.0f} s, {size * 1e3 / cpu:.0f} MB "
          f"per second of CPU; resident MB after each tenth: "
          f"{' '.join(f'{m:.1f}' for m in marks)}, peak {peak:.1f}; {said.splitlines()[0]}",
          flush=True)


def truth(output, made):
    """Largest distance of minutes (requests), of weights (requests), of the sum."""
    found = tomllib.loads(output)
    minutes = {}
    for r in made:
        minute = int(r["at"] // 60)
        minutes[minute] = minutes.get(minute, 0) + 1
    rates = [round(rate * found["interval-seconds"]) for rate in found["rates"]]
    expected = [minutes.get(m, 0) for m in range(min(minutes), max(minutes) + 1)]
    rates = rates[len(rates) - len(expected):]
    moved = sum(abs(a - b) for a, b in zip(rates, expected)) / 2
    weights = {}
    for r in made:
        weights[r["name"]] = weights.get(r["name"], 0) + 1
    wrong = sum(abs(weights.get(r["name"], 0) - r["weight"]) for r in found["request"])
    return f"{moved / len(made):.4%} in another minute, {wrong:.0f} in another class"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--prepare", action="store_true", help="only write the logs")
    parser.add_argument("--folder", default="build/profile-bench")
    parser.add_argument("--stream", type=float, metavar="GB")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    binary, _ = build(arguments.skip_build)
    os.makedirs(arguments.folder, exist_ok=True)
    made = requests(arguments.lines)
    for name in ["combined"] if arguments.stream else arguments.formats.split(","):
        write, flags = FORMATS[name]
        path = os.path.join(arguments.folder, f"{name}-{arguments.lines}.log")
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as log:
                log.writelines(write(r) + "\n" for r in made)
        if arguments.prepare:
            continue
        if arguments.stream:
            stream(binary, path, arguments.stream, arguments.folder)
            continue
        size = os.path.getsize(path) / 1e6
        runs = [profile(binary, flags, [path]) for _ in range(arguments.runs)]
        cpu = statistics.median(r[1] for r in runs)
        _, _, memory = profile(binary, flags, [path] * 4)
        print(f"{name:9} {len(made) / cpu / 1e6:5.2f} M lines/s  {size / cpu:6.0f} MB/s  peak "
              f"{runs[0][2]:.1f} MB, four times the log {memory:.1f} MB; "
              f"{truth(runs[0][0], made)}", flush=True)
        if name == "combined" and shutil.which("goaccess"):
            begin = os.times()
            subprocess.run(["taskset", "-c", "1", "goaccess", path, "--log-format=COMBINED", "-o",
                            "/dev/null", "--no-progress"], stdout=subprocess.DEVNULL, check=False)
            end = os.times()
            used = end.children_user + end.children_system
            used -= begin.children_user + begin.children_system
            print(f"goaccess  {len(made) / used / 1e6:5.2f} M lines/s  {size / used:6.0f} MB/s")


if __name__ == "__main__":
    main()
