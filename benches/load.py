#!/usr/bin/env python3
"""Cost of the load generator beside others: CPU per request and achieved rate, side by side.

Usage: benches/load.py [--only closed,mix,https,http2,memory] [--pairs 6] [--seconds 3]
                       [--rivals wrk,ab,oha] [--soak 30] [--soak-rate 20000] [--soak-pacing auto]
                       [--skip-install] [--skip-build]

Builds loadline and the test server (release), installs wrk, nginx and nghttp2 from the
distribution's packages where they are missing, and runs loadline and a rival in turn against the
same server: server pinned to CPU 0, generator to CPU 1, one thread each, closed model, GET, 14-byte
answer, keep-alive. CPU is the rusage (user + system) of the whole generator process, start
included. The ratio is taken within each pair; its median is printed with a 95 % bootstrap interval
and the target. A rival that is not there is named as skipped.

  closed  100 and 512 connections, against each rival
  mix     10 weighted requests with two variables, against wrk on one URL
  https   TLS 1.3, ECDSA P-256, nginx, against wrk
  http2   h2c, nghttpd, 100 connections of 1 stream and 10 of 10, against h2load
  memory  resident memory with 100 connections at 20 000/s (--soak-rate), over --soak seconds (600
          is the long run)
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
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "crates", "load", "tests", "data")
PORT = 18080
URL = f"http://127.0.0.1:{PORT}/"
HTTPS = f"https://localhost:{PORT}/"
BODY = "hello, world!\n"


def build(is_built=False):
    """The programs; what is built already is used as it is when asked for."""
    command = ["cargo", "build", "--release", "--quiet", "-p", "loadline-cli", "-p", "loadline-load",
               "--bin", "loadline", "--example", "rig"]
    if not is_built:
        subprocess.run(command, cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    release = os.path.join(target, "release")
    programs = os.path.join(release, "loadline"), os.path.join(release, "examples", "rig")
    for program in programs:
        if not os.path.exists(program):
            sys.exit(f"{program} is not built: leave out --skip-build")
    return programs


def run(command):
    """Runs a command on CPU 1; returns its output, CPU seconds and wall seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", "1", *command], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def loadline(binary, url, connections, seconds, *more):
    output, cpu, _ = run([binary, "load", url, "--closed", "-c", str(connections),
                          "-d", f"{seconds}s", "--cpus", "1", "--json", *more])
    result = json.loads(output)
    assert result["errors"] == 0, result
    return cpu / result["ok"] * 1e6, result["achieved_rate"]


def wrk(url, connections, seconds):
    output, cpu, _ = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url])
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return cpu / requests * 1e6, rate


def ab(url, connections, seconds):
    output, cpu, wall = run(["ab", "-q", "-k", "-c", str(connections), "-t", str(seconds),
                             "-n", "100000000", url])
    requests = int(re.search(r"Complete requests:\s+(\d+)", output).group(1))
    return cpu / requests * 1e6, requests / wall


def oha(url, connections, seconds):
    output, cpu, _ = run(["oha", "--no-tui", "-c", str(connections), "-z", f"{seconds}s",
                          "--output-format", "json", url])
    result = json.loads(output)
    rate = result["summary"]["requestsPerSec"]
    return cpu / (rate * result["summary"]["total"]) * 1e6, rate


def h2load(url, connections, seconds, streams):
    output, cpu, _ = run(["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{seconds}", url])
    requests = int(re.search(r"(\d+) succeeded", output).group(1))
    rate = float(re.search(r"([\d.]+) req/s", output).group(1))
    return cpu / requests * 1e6, rate


RIVALS = {"wrk": wrk, "ab": ab, "oha": oha}
PACKAGES = {"wrk": "wrk", "nginx": "nginx", "nghttpd": "nghttp2-server", "h2load": "nghttp2-client"}


def has(program, arguments):
    if shutil.which(program):
        return True
    package = PACKAGES.get(program)
    if package and not arguments.skip_install:
        subprocess.run(["apt-get", "install", "-y", "-qq", package], check=False,
                       stdout=subprocess.DEVNULL)
    if shutil.which(program):
        return True
    print(f"SKIP {program}: not installed")
    return False


class Server:
    """A server on CPU 0 for the time of a `with`."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        self.process = subprocess.Popen(["taskset", "-c", "0", *self.command], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        return self.process

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()


def nginx(directory):
    configuration = os.path.join(directory, "nginx.conf")
    with open(configuration, "w") as file:
        file.write(f"""daemon off; worker_processes 1; pid {directory}/pid; error_log /dev/null;
events {{ worker_connections 2048; }}
http {{ access_log off; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{PORT} ssl; ssl_certificate {DATA}/certificate.pem;
    ssl_certificate_key {DATA}/key.pem; ssl_protocols TLSv1.3;
    location / {{ return 200 '{BODY.strip()}\\n'; }} }} }}
""")
    return ["nginx", "-c", configuration]


def interval(values):
    """95 % bootstrap interval of the median."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(5000))
    return medians[125], medians[4875]


def compare(title, ours, theirs, pairs, targets):
    """Runs both in turn; prints a line for CPU and one for the rate, as far as there are targets."""
    left, right = [], []
    for _ in range(pairs):
        left.append(ours())
        right.append(theirs())
    for index, what in enumerate(["CPU us/request", "requests/s"]):
        ratios = [a[index] / b[index] for a, b in zip(left, right)]
        low, high = interval(ratios)
        print(f"{title:34} {what:15} {statistics.median(a[index] for a in left):10.2f} : "
              f"{statistics.median(b[index] for b in right):10.2f}  ratio "
              f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] n={len(ratios)}"
              f"{targets.get(index, '')}", flush=True)


def closed(binary, rig, arguments):
    for name in arguments.rivals.split(","):
        if not has(name, arguments):
            continue
        for connections, most in [(100, "0.92"), (512, "0.88")]:
            targets = {0: f"  target <= {most}", 1: "  target >= 1.05"} if name == "wrk" else {}
            with Server([rig, str(PORT)]):
                compare(f"closed, {connections} connections : {name}",
                        lambda: loadline(binary, URL, connections, arguments.seconds),
                        lambda: RIVALS[name](URL, connections, arguments.seconds),
                        arguments.pairs, targets)


def mix(binary, rig, arguments):
    if not has("wrk", arguments):
        return
    with tempfile.TemporaryDirectory() as directory, Server([rig, str(PORT)]):
        profile = os.path.join(directory, "mix.toml")
        with open(profile, "w") as file:
            for nth in range(10):
                variables = "{rand:1:100000}?n={seq}"
                file.write(f'[[request]]\nweight = {nth + 1}\npath = "/e{nth}/{variables}"\n')
        compare("mix of 10 : wrk on one URL",
                lambda: loadline(binary, URL, 100, arguments.seconds, "--profile", profile),
                lambda: wrk(URL, 100, arguments.seconds), arguments.pairs, {0: "  target <= 1.05"})


def https(binary, _, arguments):
    if not (has("wrk", arguments) and has("nginx", arguments)):
        return
    with tempfile.TemporaryDirectory() as directory, Server(nginx(directory)):
        compare("https, 100 connections : wrk",
                lambda: loadline(binary, HTTPS, 100, arguments.seconds, "--cacert",
                                 os.path.join(DATA, "certificate.pem")),
                lambda: wrk(HTTPS, 100, arguments.seconds), arguments.pairs, {0: "  target <= 1.10"})


def http2(binary, _, arguments):
    if not (has("nghttpd", arguments) and has("h2load", arguments)):
        return
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "index.html"), "w") as file:
            file.write(BODY)
        command = ["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", directory, str(PORT)]
        for connections, streams in [(100, 1), (10, 10)]:
            with Server(command):
                compare(f"h2c, {connections} x {streams} streams : h2load",
                        lambda: loadline(binary, URL, connections, arguments.seconds, "--http2",
                                         "--streams", str(streams)),
                        lambda: h2load(URL, connections, arguments.seconds, streams),
                        arguments.pairs, {0: "  target <= 1.3"})


def memory(binary, rig, arguments):
    """Resident memory after a tenth of the time, at the end, and the highest."""
    def resident(pid, field):
        with open(f"/proc/{pid}/status") as file:
            return int(re.search(rf"{field}:\s+(\d+) kB", file.read()).group(1)) / 1024
    with Server([rig, str(PORT)]):
        process = subprocess.Popen(["taskset", "-c", "1", binary, "load", URL, "--rate",
                                    f"{arguments.soak_rate}/s", "-c", "100", "-d",
                                    f"{arguments.soak}s", "--pacing", arguments.soak_pacing,
                                    "--cpus", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(max(1, arguments.soak * 0.1))
        early = resident(process.pid, "VmRSS")
        time.sleep(arguments.soak * 0.8)
        late, peak = resident(process.pid, "VmRSS"), resident(process.pid, "VmHWM")
        process.wait()
    print(f"memory over {arguments.soak} s at {arguments.soak_rate}/s: {early:.1f} MB early, "
          f"{late:.1f} MB late, peak {peak:.1f} MB  target < 16, flat", flush=True)


SERIES = {"closed": closed, "mix": mix, "https": https, "http2": http2, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SERIES))
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rivals", default="wrk")
    parser.add_argument("--soak", type=int, default=30)
    parser.add_argument("--soak-rate", type=int, default=20000)
    parser.add_argument("--soak-pacing", default="auto")
    parser.add_argument("--skip-install", action="store_true")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        sys.exit("it needs two CPUs: one for the server, one for the generator")
    binary, rig = build(arguments.skip_build)
    for name in arguments.only.split(","):
        SERIES[name](binary, rig, arguments)


if __name__ == "__main__":
    main()
