#!/usr/bin/env python3
"""Whether a disturbed trial is found out, or was not harmed.

Usage: benches/noise.py [--trials 400] [--seed 1] [--budget SECONDS] [--kinds cpu,disk,...]
                        [--keep FILE] [--judge]

Starts `ping` again and again and measures it for 1.5 s at 200 requests a second, in blocks of ten:
one in which nobody disturbs, one in which every trial is disturbed, and so on. What disturbs, how
hard, when and for how long is drawn from the seed:

  cpu     busy loops on one or all CPUs
  disk    one who writes and flushes: large blocks past the page cache, files, or 4 KiB at a time
  memory  one who takes memory until it is refused, again and again: in a group whose limit it fills
          beside a file that it reads, or gigabytes of the machine's
  steal   busy loops on all CPUs in a group of the largest weight there is: what is left of a CPU
          is a hundredth
  clock   the wall clock is set, by 0.4 s to 3 s either way, and back

Half of the disturbances last the whole trial, the others begin and end anywhere in it. A disturbed
trial counts as seen where loadline calls it INVALID, as harmless where its p50, p99, CPU time a
request and start time lie between the 1st and the 99th percentile of the quiet trials (those that
are not INVALID), else as missed. A quiet trial that is INVALID is a false alarm, unless its reason is steal of the
hypervisor, which nobody here controls: those are counted apart.

That nobody disturbs a quiet trial is not taken on trust: the CPU time of all other processes on the
machine is read from /proc before and after it. Where they used more than a twentieth of the CPUs, by
their own account, the trial was not quiet: it is counted apart, and no figure is compared with it.

A line of each trial is appended to FILE, where a later call goes on; --judge only counts what is
there. Needs root, target/release/loadline, build/workloads/ping.jar and a quiet machine.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

KINDS = ["cpu", "disk", "memory", "steal", "clock"]
BLOCK = 10
# Longest time from the call of loadline to the end of its trial, about. Seconds.
LONGEST = 4.0
# A disturbance that a trial had less of did not disturb it. Seconds.
LEAST = 0.05
# A quiet trial beside which others used more of the CPUs was none.
MOST_OTHERS = 0.05


def loop(command, **more):
    """A command again and again, as a process group of its own."""
    text = f"while :; do {command}; done"
    return subprocess.Popen(["sh", "-c", text], start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def group(controller, name):
    """A control group of this controller, v1 or v2."""
    v1 = os.path.join("/sys/fs/cgroup", controller)
    path = os.path.join(v1 if os.path.isdir(v1) else "/sys/fs/cgroup", name)
    os.makedirs(path, exist_ok=True)
    return path


def put(path, names, value):
    """Writes to the first of these files that there is: v1 and v2 name them differently."""
    for name in names:
        file = os.path.join(path, name)
        if os.path.exists(file):
            with open(file, "w", encoding="ascii") as opened:
                opened.write(value)
            return
    raise FileNotFoundError(f"{path}: none of {names}")


class Disturbance:
    """What disturbs; `how` says which of its forms was drawn."""

    def __init__(self, kind, draw, place):
        self.kind, self.place, self.loops, self.groups = kind, place, [], []
        cpus = os.cpu_count()
        forms = {
            "cpu": [f"{count} loops" for count in range(1, cpus + 1)],
            "disk": ["direct", "files", "small"],
            "memory": ["a group of 512 MiB", "3 GiB of the machine"],
            "steal": [f"{cpus} loops of the largest weight"],
            "clock": ["0.4", "-0.4", "1.5", "-1.5", "3", "-3"],
        }
        self.how = draw.choice(forms[kind])

    def begin(self):
        getattr(self, f"begin_{self.kind}")()

    def begin_cpu(self):
        for cpu in range(int(self.how.split()[0])):
            self.loops.append(loop(":", preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, [cpu])))

    def begin_disk(self):
        file = os.path.join(self.place, "disk")
        how = {"direct": "bs=4M count=64 oflag=direct", "files": "bs=1M count=128 conv=fsync",
               "small": "bs=4k count=2000 oflag=dsync"}[self.how]
        self.loops.append(loop(f"dd if=/dev/zero of={file} {how}"))

    def begin_memory(self):
        if self.how.startswith("3"):
            self.loops.append(loop("prlimit --as=3221225472 tail /dev/zero"))
            return
        path = group("memory", "loadline-noise")
        put(path, ["memory.limit_in_bytes", "memory.max"], str(512 << 20))
        self.groups.append(path)
        for command in ("prlimit --as=500000000 tail /dev/zero",
                        f"cat {self.place}/read > /dev/null"):
            self.loops.append(self.inside(path, command))

    def begin_steal(self):
        path = group("cpu", "loadline-noise")
        put(path, ["cpu.weight", "cpu.shares"],
            "10000" if os.path.exists(f"{path}/cpu.weight") else "262144")
        self.groups.append(path)
        for cpu in range(os.cpu_count()):
            self.loops.append(self.inside(path, ":", cpu))

    def begin_clock(self):
        now = time.clock_gettime(time.CLOCK_REALTIME)
        time.clock_settime(time.CLOCK_REALTIME, now + float(self.how))

    @staticmethod
    def inside(path, command, cpu=None):
        def join():
            put(path, ["cgroup.procs"], str(os.getpid()))
            if cpu is not None:
                os.sched_setaffinity(0, [cpu])
        return loop(command, preexec_fn=join)

    def end(self):
        if self.kind == "clock":
            now = time.clock_gettime(time.CLOCK_REALTIME)
            time.clock_settime(time.CLOCK_REALTIME, now - float(self.how))
        for one in self.loops:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    def clean(self):
        """What is left, before the next trial; takes its time."""
        if self.kind == "disk":
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.place, "disk"))
            os.sync()
        for path in self.groups:
            for _ in range(100):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.02)
        if self.kind != "clock":
            time.sleep(0.3)


class During:
    """Disturbs from `after` seconds on for `length` seconds, or until it is left."""

    def __init__(self, disturbance, after, length):
        self.disturbance, self.after, self.length = disturbance, after, length
        self.left = threading.Event()
        self.span = None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        if self.left.wait(self.after):
            return
        begin = time.monotonic_ns()
        self.disturbance.begin()
        try:
            self.left.wait(self.length)
        finally:
            self.disturbance.end()
        self.span = (begin, time.monotonic_ns())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.left.set()
        self.thread.join()
        self.disturbance.clean()


def call(arguments, words, state):
    return subprocess.run([arguments.loadline, *words, "--state", state],
                          capture_output=True, text=True, check=False).stdout


def users():
    """CPU seconds of every other process that is none of the kernel's, with those of its children
    that have ended."""
    found, tick = {}, os.sysconf("SC_CLK_TCK")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                head, tail = file.read().rsplit(")", 1)
        except OSError:
            continue
        fields = tail.split()
        if fields[1] not in ("2", "0") or pid == "1":
            used = sum(int(field) for field in fields[11:15]) / tick
            found[pid, fields[19]] = (head.split("(", 1)[1], used)
    return found


def others(before, wall):
    """What processes used since then that were there and are, as a share of the CPUs, and the one
    that used most."""
    grown = {key: (used - before.get(key, (name, 0.0))[1], name)
             for key, (name, used) in users().items()}
    most = max(grown.values(), default=(0, ""))
    share = sum(used for used, _ in grown.values()) / wall / os.cpu_count()
    return {"share": round(share, 4), "most": most[1] if most[0] > 0 else ""}


def trial(arguments, state):
    """One trial: its record, its line of figures, and what other processes used meanwhile; what was
    said where loadline found the machine too disturbed to begin."""
    before, begin = users(), time.monotonic()
    command = [
        arguments.loadline, "run", "--state", state, "--wait", "--repeats", "1",
        "--memory", "160Mi", "--slo", "p99<100ms,errors<1%,start<10s", "--rate", "200/s",
        "--warm-up", "500ms", "--measure", "1500ms", "--ready", "/health",
        "--url", "http://localhost:8080/", "--",
        "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx32m",
        "-jar", "build/workloads/ping.jar", "--port=8080", "--work-rounds=100000",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith("run ") and " #1 " in line:
            # The first attempt is the trial: what is INVALID is not repeated here.
            process.send_signal(signal.SIGTERM)
    process.wait()
    beside = others(before, time.monotonic() - begin)
    try:
        shown = json.loads(call(arguments, ["show", "last", "--json"], state))
        lines = call(arguments, ["export", "last", "--format", "csv"], state).splitlines()
        return shown["trials"][0], next(csv.DictReader(lines)), beside
    except (ValueError, LookupError, StopIteration):
        if "this machine cannot run trials" in said:
            return said
        sys.exit(f"no trial: {said}")


def overlap(span, phase):
    """Seconds of a phase in which it was disturbed."""
    if span is None:
        return 0.0
    return max(0, min(span[1], phase["end_ns"]) - max(span[0], phase["start_ns"])) / 1e9


def figures(line):
    """Those by which a disturbance would harm an answer; `None` where there are none."""
    number = {name: float(text) for name, text in line.items() if text and name.endswith(
        ("_s", "_rate", "cpus_used"))}
    rate, cpus = number.get("achieved_rate"), number.get("cpus_used")
    return {
        "p50": number.get("p50_s"), "p99": number.get("p99_s"), "start": number.get("start_s"),
        "CPU a request": cpus / rate if rate and cpus is not None else None,
    }


def row(record, line, beside, kind, how, span):
    """What is kept of a trial."""
    evidence = record["evidence"]
    return {
        "kind": kind, "how": how, "verdict": record["verdict"], "reason": record["reason"],
        "noise": evidence["noise"], "start_noise": evidence.get("start_noise"),
        "figures": figures(line), "others": beside,
        "disturbed_s": {phase["phase"]: round(overlap(span, phase), 3)
                        for phase in evidence["phases"]},
    }


def measure(arguments, draw, state, place):
    """Trials until there are as many as wanted, or the budget ends."""
    begin = time.monotonic()
    rows = read(arguments.keep)
    # Draws of the trials that an earlier call made are not made again.
    for _ in range(len(rows)):
        drawn(arguments, draw, place)
    while len(rows) < arguments.trials and time.monotonic() - begin < arguments.budget:
        is_quiet = len(rows) // BLOCK % 2 == 0
        disturbance, after, length = drawn(arguments, draw, place)
        kind, how, span = None, None, None
        if is_quiet:
            found = trial(arguments, state)
        else:
            with During(disturbance, after, length) as during:
                found = trial(arguments, state)
            kind, how, span = disturbance.kind, disturbance.how, during.span
        if isinstance(found, str):
            new = {"kind": kind, "how": how, "refused": found}
        else:
            new = row(*found, kind, how, span)
        rows.append(new)
        with open(arguments.keep, "a", encoding="utf-8") as kept:
            kept.write(json.dumps(new) + "\n")
    return rows


def drawn(arguments, draw, place):
    """What disturbs the next trial, from when on, and for how long."""
    disturbance = Disturbance(draw.choice(arguments.kinds.split(",")), draw, place)
    is_whole, after, length = draw.random() < 0.5, draw.uniform(0, 3), draw.uniform(0.3, 2)
    return (disturbance, 0, LONGEST * 10) if is_whole else (disturbance, after, length)


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as kept:
        return [json.loads(line) for line in kept]


def is_invalid(one):
    return one["verdict"]["class"] == "invalid"


def is_steal(one):
    return is_invalid(one) and "the hypervisor took" in text_of(one["reason"])


def text_of(reason):
    return reason if isinstance(reason, str) else json.dumps(reason)


def is_quiet(one):
    # The first series did not look at others.
    others = one.get("others", {"share": 0})
    return one["kind"] is None and others["share"] <= MOST_OTHERS


def is_disturbed(one):
    phases = one["disturbed_s"]
    return sum(phases.get(name, 0) for name in ("start", "warm_up", "measure")) >= LEAST


def within(values):
    """The 1st and the 99th percentile: a few outliers would make everything harmless."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return cuts[0], cuts[-1]


def outside(one, spans):
    """The figures that are not within what quiet trials have."""
    def is_out(name):
        value = one["figures"][name]
        low, high = spans[name]
        return value is None or not low <= value <= high
    return [name for name in spans if is_out(name)]


def judge(rows):
    """Prints the tables; whether both shares are kept."""
    refused = [one for one in rows if "refused" in one]
    rows = [one for one in rows if "refused" not in one]
    quiet = [one for one in rows if is_quiet(one)]
    loud = [one for one in rows if one["kind"] is None and not is_quiet(one)]
    steal = [one for one in quiet if is_steal(one)]
    alarms = [one for one in quiet if is_invalid(one) and not is_steal(one)]
    calm = [one["figures"] for one in quiet if not is_invalid(one)]
    if not calm:
        sys.exit("no quiet trial was valid: there is nothing to compare with")
    spans = {}
    for name in calm[0]:
        values = [one[name] for one in calm]
        spans[name] = within(values)
        low, high = (f"{value * 1e3:.3g}" for value in spans[name])
        print(f"{name}: {low} to {high} ms from the 1st to the 99th percentile of {len(calm)} "
              f"quiet trials, median {statistics.median(values) * 1e3:.3g} ms")
    print("\n| what disturbed | trials | INVALID | harmless | missed |\n|---|---:|---:|---:|---:|")
    all_seen, all_harmless, all_missed = 0, 0, []
    for kind in KINDS:
        for how in sorted({one["how"] for one in rows if one["kind"] == kind}):
            ones = [o for o in rows if (o["kind"], o["how"]) == (kind, how) and is_disturbed(o)]
            seen = [one for one in ones if is_invalid(one)]
            missed = [one for one in ones if not is_invalid(one) and outside(one, spans)]
            harmless = len(ones) - len(seen) - len(missed)
            print(f"| {kind}, {how} | {len(ones)} | {len(seen)} | {harmless} | {len(missed)} |")
            all_seen += len(seen)
            all_harmless += harmless
            all_missed += missed
    count = all_seen + all_harmless + len(all_missed)
    print(f"| all | {count} | {all_seen} | {all_harmless} | {len(all_missed)} |\n")
    for one in all_missed:
        shown = {name: round(one["figures"][name] * 1e3, 2) if one["figures"][name] else None
                 for name in outside(one, spans)}
        print(f"missed: {one['kind']}, {one['how']}, disturbed {one['disturbed_s']}: {shown} ms, "
              f"{one['noise']}")
    for one in alarms:
        print(f"false alarm: {text_of(one['reason'])}; others {one.get('others')}")
    for one in loud:
        print(f"not quiet: others {one['others']}, "
              f"{'INVALID' if is_invalid(one) else 'counted'}")
    known = len(quiet) - len(steal)
    good, false = (all_seen + all_harmless) / max(count, 1), len(alarms) / max(known, 1)
    print(f"{good:.1%} of {count} disturbed trials INVALID or harmless (at least 95 % wanted); "
          f"{len(alarms)} of {known} quiet ones flagged, {false:.1%} (at most 2 % wanted), "
          f"{len(steal)} more for steal of the "
          f"hypervisor; {len(loud)} were not quiet; {len(refused)} were refused before "
          "they began")
    return good >= 0.95 and false <= 0.02


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9,
                        help="begin no trial after so many seconds")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", default="noise.jsonl")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--loadline", default="target/release/loadline")
    arguments = parser.parse_args()
    if arguments.judge:
        sys.exit(0 if judge(read(arguments.keep)) else 1)
    with tempfile.TemporaryDirectory(dir=".") as place:
        with open(os.path.join(place, "read"), "wb") as file:
            file.truncate(1 << 30)
        state = os.path.join(place, "state")
        rows = measure(arguments, random.Random(arguments.seed), state, os.path.abspath(place))
    print(f"{len(rows)} trials so far" if len(rows) < arguments.trials else "")
    if len(rows) >= arguments.trials:
        sys.exit(0 if judge(rows) else 1)


if __name__ == "__main__":
    main()
