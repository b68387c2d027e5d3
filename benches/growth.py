#!/usr/bin/env python3
"""Do growth factors carry over to services that they were not fitted on?

Reads records/endurance/parts.csv. Fits, for each part of a budget, the largest growth from the aged start
to the end of a run over six services, and applies it to the other six; then the other way round.

    benches/growth.py
"""

import collections
import csv
import pathlib

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


if __name__ == "__main__":
    main()
