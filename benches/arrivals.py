#!/usr/bin/env python3
"""How exactly requests arrive: lateness and dispersion as a server sees them.

Usage: benches/arrivals.py [--seconds 5] [--rates 1000,5000,20000] [--modes auto,exact,1ms,poisson]
                           [--fifo] [--skip-build]

Builds loadline and the example rig (release). The server logs the arrival of every
request; lateness is the arrival minus the ideal uniform schedule (it means nothing for Poisson
arrivals). Dispersion is variance over mean of the arrivals in each ms, of the whole run and as the
median over stretches of 250 ms, which a stall of the machine does not change. Server on CPU 0,
generator on CPU 1, 100 connections. With --fifo both run with real-time priority (needs root), so
that other programs cannot take their CPUs: what is left is the generator's doing, or the
hypervisor's.
"""

import argparse
import json
import subprocess
import time

from load import PORT, URL, build, run


def measure(binary, rig, rate, mode, seconds, priority):
    server = subprocess.Popen(["taskset", "-c", "0", *priority, rig, str(PORT), f"rate={rate}"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    command = [*priority, binary, "load", URL, "--rate", f"{rate}/s", "-d", f"{seconds}s",
               "--cpus", "1", "--json"]
    command += ["--poisson"] if mode == "poisson" else ["--pacing", mode]
    output, cpu, _ = run(command)
    arrivals = json.loads(server.communicate()[0])
    result = json.loads(output)
    lag, latency = result["send_lag_us"], result["latency_us"]
    print(f"{rate:6}/s {mode:8} late p50 {arrivals['late_p50_us']:7.1f} p99 "
          f"{arrivals['late_p99_us']:8.1f} us  dispersion {arrivals['dispersion']:6.3f} "
          f"(median of 250 ms {arrivals['dispersion_median']:6.3f})  most/ms "
          f"{arrivals['most_per_ms']:4}  latency p50 {latency['p50']:7.1f} p99 {latency['p99']:7.1f}"
          f"  lag p99 {lag['p99']:7.1f} us  CPU {cpu / result['ok'] * 1e6:6.1f} us/request"
          f"  {result['saturated'] or 'ok'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rates", default="1000,5000,20000")
    parser.add_argument("--modes", default="auto,exact,1ms,poisson")
    parser.add_argument("--fifo", action="store_true")
    parser.add_argument("--skip-build", action="store_true")
    arguments = parser.parse_args()
    binary, rig = build(arguments.skip_build)
    priority = ["chrt", "--fifo", "1"] if arguments.fifo else []
    for rate in arguments.rates.split(","):
        for mode in arguments.modes.split(","):
            measure(binary, rig, int(rate), mode, arguments.seconds, priority)


if __name__ == "__main__":
    main()
