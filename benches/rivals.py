"""Other load generators, each run the same way, with the latency it reports.

Each function runs a tool for some seconds over some connections, at `rate` requests a second where
the tool knows rates (closed otherwise), and returns its figures in ms (p50, p95, p99, p99.9, max;
None where the tool prints none) and a remark. A tool that is not installed is skipped by name:
`apt-get install wrk apache2-utils hey nghttp2-client`, `npm install -g autocannon`,
`go install github.com/tsenart/vegeta/v12@v12.12.0`, `cargo install oha --locked`,
`go install github.com/codesenberg/bombardier@v1.2.6` (Debian's bombardier is a game).
"""

import json
import re
import shutil
import subprocess

from load import URL, run

SCALE = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "secs": 1e3}


def figure(output, pattern):
    """A time in the output; the pattern has a group for the number and one for the unit."""
    found = re.search(pattern, output)
    return float(found.group(1)) * SCALE[found.group(2)] if found else None


def wrk(connections, seconds, _):
    output, _, _ = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", URL])
    unit = r"([\d.]+)(us|ms|s)"
    at = r"\s{}%\s+" + unit
    return [figure(output, at.format("50")), None, figure(output, at.format("99")), None,
            figure(output, r"Latency\s+\S+\s+\S+\s+" + unit)], "closed"


def ab(connections, seconds, _):
    output, _, _ = run(["ab", "-q", "-k", "-c", str(connections), "-t", str(seconds),
                        "-n", "100000000", URL])

    def value(percent):
        found = re.search(rf"{percent}%\s+(\d+)", output)
        return float(found.group(1)) if found else None
    return [value(50), value(95), value(99), None, value(100)], "closed"


def hey(connections, seconds, rate):
    output, _, _ = run(["hey", "-z", f"{seconds}s", "-c", str(connections), "-cpus", "1",
                        "-q", str(rate / connections), URL])
    at = r"{}% in ([\d.]+) (secs)"
    return [figure(output, at.format(50)), figure(output, at.format(95)),
            figure(output, at.format(99)), None,
            figure(output, r"Slowest:\s+([\d.]+) (secs)")], "rate"


def bombardier(connections, seconds, rate):
    output, _, _ = run(["bombardier", "-c", str(connections), "-d", f"{seconds}s",
                        "-r", str(rate), "-p", "r", "-o", "json", URL])
    latency = json.loads(output)["result"]["latency"]
    percentiles = latency.get("percentiles", {})
    at = [percentiles.get(str(p)) for p in (50, 95, 99)]
    ms = [None if v is None else v / 1e3 for v in [*at, None, latency["max"]]]
    return ms, "rate"


def h2load(connections, seconds, rate):
    # Its request log: begin in us since 1970, status, time in us.
    subprocess.run(["rm", "-f", "/tmp/h2load.log"], check=True)
    run(["h2load", "--h1", "-t1", "-c", str(connections), "-D", str(seconds),
         "--rps", str(rate / connections), "--log-file=/tmp/h2load.log", URL])
    with open("/tmp/h2load.log", encoding="utf-8") as log:
        times = sorted(int(line.split()[2]) / 1e3 for line in log)
    at = [times[min(int(len(times) * q), len(times) - 1)] for q in (0.5, 0.95, 0.99, 0.999, 1)]
    return at, f"rate, {len(times)} answers"


def autocannon(connections, seconds, rate):
    output, _, _ = run(["autocannon", "-c", str(connections), "-d", str(seconds), "-R", str(rate),
                        "-j", "--no-progress", URL])
    latency = json.loads(output)["latency"]
    return [latency["p50"], None, latency["p99"], latency["p99_9"],
            latency["max"]], "rate, corrected"


def vegeta(connections, seconds, rate):
    command = (f"echo 'GET {URL}' | vegeta attack -duration={seconds}s -rate={rate}/s "
               f"-connections={connections} -workers={connections} | vegeta report -type=json")
    output, _, _ = run(["sh", "-c", command])
    latency = json.loads(output)["latencies"]
    return [latency["50th"] / 1e6, latency["95th"] / 1e6, latency["99th"] / 1e6, None,
            latency["max"] / 1e6], "rate"


def oha_with(corrected):
    def measure(connections, seconds, rate):
        output, _, _ = run(["oha", "--no-tui", "--output-format", "json", "-z", f"{seconds}s",
                            "-c", str(connections), "-q", str(rate),
                            *(["--latency-correction"] if corrected else []), URL])
        result = json.loads(output)
        at = result["latencyPercentiles"]
        ms = [at[p] * 1e3 for p in ("p50", "p95", "p99", "p99.9")]
        return [*ms, result["summary"]["slowest"] * 1e3], "rate"
    return measure


# Name in the table: program, function.
RIVALS = {
    "wrk": ("wrk", wrk),
    "ab": ("ab", ab),
    "hey": ("hey", hey),
    "bombardier": ("bombardier", bombardier),
    "h2load": ("h2load", h2load),
    "autocannon": ("autocannon", autocannon),
    "vegeta": ("vegeta", vegeta),
    "oha": ("oha", oha_with(False)),
    "oha-lc": ("oha", oha_with(True)),
}


def installed(names):
    """The rivals of a list that are there, by name; the others are named on the way."""
    chosen = {}
    for name in names:
        program, function = RIVALS[name]
        if shutil.which(program):
            chosen[name] = function
        else:
            print(f"SKIP {name}: {program} is not installed", flush=True)
    return chosen
