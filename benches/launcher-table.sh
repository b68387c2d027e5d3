#!/bin/sh
# Prints the Markdown table of a CSV of launcher-spring.sh: a row a size and JDK, plain java beside
# loadline-launch; the median where a cell was measured more than once.
#
#   benches/launcher-table.sh records/DATE-launcher-spring/cells.csv
awk -F, '
function median(list,    n, i, j, t, v) {
    n = split(list, v, " ")
    if (n == 0) return ""
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function state(k) {
    if (dead[k] && !ok[k]) return "no" (kills[k] ? ", OOM kill" : "")
    if (dead[k]) return ok[k] " of " ok[k] + dead[k] (kills[k] ? ", OOM kill" : "")
    return "yes" (kills[k] ? ", OOM kill" : "") (ended[k] ? ", ended under load" : "")
}
NR > 1 && ($5 == "plain" || $5 == "launch") {
    row = sprintf("%s %6d %6d", $1, $2, $3)
    if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
    k = row SUBSEP $5
    if ($6 == "yes") ok[k]++; else dead[k]++
    kills[k] += $7
    if ($13 == "yes") ended[k]++
    start[k] = start[k] " " $9; rate[k] = rate[k] " " $10; p99[k] = p99[k] " " $11; peak[k] = peak[k] " " $14
    runs[row]++
}
END {
    print "| JDK | Memory | CPU | Starts: plain | launch | Start time, s: plain | launch | Requests/s: plain | launch | ratio | p99, ms: plain | launch | Peak, MiB: plain | launch |"
    print "|---|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (i = 1; i <= rows; i++) {
        row = order[i]; split(row, w, " "); p = row SUBSEP "plain"; l = row SUBSEP "launch"
        rp = median(rate[p]); rl = median(rate[l])
        printf "| %s | %s MiB | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", w[1], w[2], w[3] / 100,
            state(p), state(l), median(start[p]), median(start[l]), rp, rl,
            (rp > 0 && rl > 0) ? sprintf("%.2f", rl / rp) : "", median(p99[p]), median(p99[l]), median(peak[p]), median(peak[l])
    }
}' "$1"
