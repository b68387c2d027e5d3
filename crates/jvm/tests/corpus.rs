//! The parser against public GC logs and the figures of other tools.
//!
//! The logs are not part of the project (several licences); they are looked for in
//! `$LOADLINE_SHARED/gclogs` or in `shared/gclogs` next to the checkout. `manifest.csv` has, for
//! each log, the figures of GCViewer, GCToolKit and plain regular expressions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use loadline_jvm::gclog::{self, GcLog};

/// Counts are equal and sums within this share, or within [`SUM_SLACK`] seconds.
const SUM_SHARE: f64 = 0.01;
const SUM_SLACK: f64 = 0.000_5;

/// Logs on which the other tools agree and are wrong: each loses a full collection with a record
/// over several lines. Our count and sum, from reading the log by eye (docs/guides/gc-logs.md).
const KNOWN_BETTER: [(&str, u64, f64); 3] = [
    // `GC time would exceed GCTimeLimit of 98%` and a line end before the time, 7.21 s.
    (
        "garbagecat/src/test/resources/data/dataset132.txt",
        2,
        15.222_988,
    ),
    // `[GC concurrent-root-region-scan-start]` inside a full collection of 3.46 s.
    (
        "garbagecat/src/test/resources/data/dataset76.txt",
        3,
        6.990_907,
    ),
    // The same, 4.33 s.
    (
        "gctoolkit-testdata/gctoolkit-gclogs/preunified/g1gc/details/reference/post17040/gc_with_overflow.log",
        606,
        463.412_363,
    ),
];

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("LOADLINE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    Some(shared.join("gclogs")).filter(|corpus| corpus.join("manifest.csv").is_file())
}

/// The fields of a line; a quoted one may have commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields.last_mut().expect("one field at least").push(c),
        }
    }
    fields
}

/// Rows of the manifest by column name.
fn manifest(corpus: &Path) -> Vec<HashMap<String, String>> {
    let text = std::fs::read_to_string(corpus.join("manifest.csv")).expect("corpus() has seen it");
    let mut lines = text.lines();
    let names = fields(lines.next().expect("a header"));
    lines
        .map(|line| names.iter().cloned().zip(fields(line)).collect())
        .collect()
}

fn read(path: &Path) -> Option<GcLog> {
    gclog::files::read(&[path.to_owned()], 1000).ok()
}

/// Count and sum that at least two tools give.
fn agreed(row: &HashMap<String, String>) -> Option<(u64, f64)> {
    let (count, sum) = match row["agreement"].as_str() {
        "all3" | "gcviewer=gctoolkit" | "gcviewer=naive" => {
            ("gcviewer_gc_count", "gcviewer_gc_sum_s")
        }
        "gctoolkit=naive" => ("naive_stw_count", "naive_stw_sum_s"),
        _ => return None,
    };
    Some((row[count].parse().ok()?, row[sum].parse().ok()?))
}

#[test]
fn pauses_are_those_that_two_other_tools_agree_on() {
    let Some(corpus) = corpus() else {
        println!("SKIP pauses_are_those_that_two_other_tools_agree_on: no shared/gclogs");
        return;
    };
    let (mut right, mut all) = (0, 0);
    let mut wrong = Vec::new();
    for row in manifest(&corpus) {
        let Some(agreed) = agreed(&row) else { continue };
        let file = row["file"].as_str();
        all += 1;
        let found = read(&corpus.join(file))
            .map(|log| (log.summary.stw.count, log.summary.stw.total.as_secs_f64()));
        if found.is_some_and(|found| agree(found, agreed)) {
            right += 1;
            continue;
        }
        println!("differs: {file}: the tools find {agreed:?}, we {found:?}");
        let better = KNOWN_BETTER.iter().find(|(known, ..)| *known == file);
        if !better.is_some_and(|(_, count, sum)| found.is_some_and(|f| agree(f, (*count, *sum)))) {
            wrong.push(file.to_owned());
        }
    }
    println!("{right} of {all} logs agree");
    assert!(all > 100, "the manifest has lost its rows");
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Whether counts are equal and sums are near.
fn agree(found: (u64, f64), wanted: (u64, f64)) -> bool {
    let slack = (SUM_SHARE * wanted.1).max(SUM_SLACK);
    found.0 == wanted.0 && (found.1 - wanted.1).abs() <= slack
}

#[test]
fn every_log_is_read_without_a_panic_and_without_loss() {
    let Some(corpus) = corpus() else {
        println!("SKIP every_log_is_read_without_a_panic_and_without_loss: no shared/gclogs");
        return;
    };
    let (mut logs, mut refused, mut unknown, mut lines) = (0u64, 0u64, 0u64, 0u64);
    for row in manifest(&corpus) {
        match gclog::files::read(&[corpus.join(&row["file"])], 10) {
            Ok(log) => {
                logs += 1;
                let input = &log.input;
                assert_eq!(
                    input.counts.lines,
                    input.gc_lines
                        + input.other_lines
                        + input.unknown_lines
                        + input.counts.too_long
                        + input.empty_lines,
                    "{}: every line is counted once",
                    row["file"]
                );
                unknown += input.unknown_lines;
                lines += input.counts.lines;
            }
            Err(error) => {
                refused += 1;
                println!(
                    "refused: {} {} {}: {}",
                    row["format"],
                    row["collector"],
                    row["agreement"],
                    error.to_string().lines().next().unwrap_or_default()
                );
            }
        }
    }
    println!("{logs} logs read, {refused} refused, {unknown} of {lines} lines unknown");
}
