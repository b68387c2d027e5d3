#!/usr/bin/env python3
"""Do growth factors carry over to services that they were not fitted on?

Reads records/endurance/parts.csv. Fits, for each part of a budget, the largest growth from the aged start
to the end of a run over six services, and applies it to the other six; then the other way round.

    benches/growth.py
"""

import collections
import csv
import math
import pathlib
import statistics

RECORDS = pathlib.Path(__file__).parent.parent / "records/endurance"
# The heap is fixed, and file pages are room rather than growth.
GROWING = ["metaspace", "code_cache", "stacks", "malloc", "jvm", "kernel"]


def read_parts():
    """MiB by service and part: in the aged start, expected by its budget, and at the end."""
    parts = collections.defaultdict(dict)
    with open(RECORDS / "parts.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            columns = ("aged_mib", "expected_mib", "end_mib")
            parts[row["service"]][row["part"]] = [float(row[name]) for name in columns]
    return parts


def read_limits():
    with open(RECORDS / "services.csv", encoding="utf-8") as file:
        return {row["service"]: float(row["limit_mib"]) for row in csv.DictReader(file)}


def read_bursts():
    """MiB by service: code before and after the ageing burst, and what the burst added to all memory."""
    with open(RECORDS / "bursts.csv", encoding="utf-8") as file:
        rows = [[value for value in row.values()] for row in csv.DictReader(file)]
    return {name: [float(value) if value else None for value in values] for name, *values in rows}


def read_needs():
    with open(RECORDS / "services.csv", encoding="utf-8") as file:
        return {row["service"]: float(row["need_mib"]) for row in csv.DictReader(file)}


def print_present_rule(parts, limits):
    needs, spares = read_needs(), []
    print("| service | code, judged to aged | after an hour | its growth: burst, hour | limit then | now | spare |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (judged, aged, added) in sorted(read_bursts().items()):
        burst, hour = aged - judged, parts[name]["code_cache"][2] - aged
        more = max(burst, 0.02 * aged) - (parts[name]["code_cache"][1] - parts[name]["code_cache"][0])
        malloc = parts[name]["malloc"]
        if added is not None:
            more += 0.08 * malloc[0] - (malloc[1] - malloc[0])
        limit = 4 * math.ceil((limits[name] + more) / 4)
        spares.append(limit / needs[name] - 1)
        print(
            f"| {name} | {judged:.1f} to {aged:.1f} | {aged + hour:.1f} | {burst:.1f}, {hour:.1f} "
            f"| {limits[name]:.0f}Mi | {limit}Mi | {spares[-1]:.1%} |"
        )
    print(f"spare: median {statistics.median(spares):.1%}, least {min(spares):.1%}, most {max(spares):.1%}")


def fit_factors(parts, services):
    def largest(part):
        return max(parts[name][part][2] / max(parts[name][part][0], 0.1) for name in services)

    return {part: largest(part) for part in GROWING}


def main():
    parts, limits = read_parts(), read_limits()
    names = sorted(parts)
    halves = [names[0::2], names[1::2]]
    print("| service | limit, MiB | aged | budget | fitted on the other six | at the end |")
    print("|---|---:|---:|---:|---:|---:|")
    exceeded = {"budget": 0, "fitted": 0}
    near = 0
    for own, other in [halves, halves[::-1]]:
        factors = fit_factors(parts, other)
        for name in own:
            total = lambda column: sum(parts[name][part][column] for part in GROWING)
            aged, budget, end = total(0), total(1), total(2)
            fitted = sum(parts[name][part][0] * factors[part] for part in GROWING)
            exceeded["budget"] += end > budget
            exceeded["fitted"] += end > fitted
            near += abs(budget - end) <= 0.04 * limits[name]
            print(f"| {name} | {limits[name]:.0f} | {aged:.1f} | {budget:.1f} | {fitted:.1f} | {end:.1f} |")
    print(f"{len(names)} services: {exceeded['budget']} outgrew their budget, {exceeded['fitted']} the factors")
    print(f"of the other six; {near} ended within 4 % of their limit of what their budget expected")
    print_present_rule(parts, limits)


if __name__ == "__main__":
    main()
