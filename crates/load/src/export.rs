//! Files that other tools read: `.hgrm` percentiles, `.hlog` interval log, CSV a second.
//!
//! Owns their text forms. Source of both histogram forms: HdrHistogram (`outputPercentileDistribution`
//! and HistogramLogWriter, log format 1.3); the crate `hdrhistogram` writes the log only behind
//! two borrows for its whole life, so the four header lines and the rows are written here.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use crate::histogram::{self, Histogram};
use crate::outcome::{LoadSecond, LoadTotals};

/// Steps for each halving of the distance to 100 %, as the usual tools print.
const TICKS_PER_HALF: u32 = 5;
const NS_PER_MS: f64 = 1e6;

/// The percentile distribution in ms, as the public plotter reads it. Percentiles run over all
/// requests: `failed` ones that are not in the histogram count as infinitely slow, so the rows end
/// at the share that was answered.
pub fn to_hgrm(histogram: &Histogram, failed: u64) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_hgrm(&mut out, histogram, failed);
    out
}

fn write_hgrm(out: &mut String, histogram: &Histogram, failed: u64) -> std::fmt::Result {
    writeln!(
        out,
        "{:>12} {:>12} {:>12} {:>12}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let answered = match failed {
        0 => 1.0,
        _ => histogram.len() as f64 / (histogram.len() + failed) as f64,
    };
    let mut total = 0;
    for row in histogram.iter_quantiles(TICKS_PER_HALF) {
        total += row.count_since_last_iteration();
        let value = row.value_iterated_to().min(histogram.max()) as f64 / NS_PER_MS;
        let quantile = row.quantile_iterated_to() * answered;
        let rest = if quantile < 1.0 {
            format!("{:12.2}", 1.0 / (1.0 - quantile))
        } else {
            format!("{:>12}", "inf")
        };
        writeln!(out, "{value:12.3} {quantile:12.6} {total:12} {rest}")?;
    }
    let [mean, deviation, max] = [
        histogram.mean() / NS_PER_MS,
        histogram.stdev() / NS_PER_MS,
        histogram.max() as f64 / NS_PER_MS,
    ];
    let count = histogram.len();
    let (buckets, halves) = (histogram.buckets(), 2048);
    writeln!(
        out,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]"
    )?;
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    writeln!(
        out,
        "#[Buckets = {buckets:12}, SubBuckets     = {halves:12}]"
    )?;
    match failed {
        0 => Ok(()),
        _ => writeln!(out, "#[Failed  = {failed:12}]"),
    }
}

/// The head of an interval log. `start` is the wall-clock time of the run's start, which the
/// intervals count from.
pub fn hlog_head(start: SystemTime) -> String {
    let since = start.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs_f64();
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch)]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// One second of an interval log; `offset` is its beginning, from the run's start. The values are
/// ns, the maximum is printed in ms as the standard readers expect. Warm-up requests get separate
/// rows with a tag, which those readers skip by default. The form has no place for failed requests:
/// a comment counts them.
pub fn hlog_rows(offset: Duration, second: &LoadSecond) -> String {
    let mut rows = String::new();
    for (is_warmup, totals) in row_phases(second) {
        let failed = totals.failed_requests() + totals.unfinished;
        // Writing to a String cannot fail.
        let _ = match failed {
            0 => Ok(()),
            _ => writeln!(
                rows,
                "#[Failed: {failed} (requests that are not in the next line)]"
            ),
        };
        let _ = writeln!(
            rows,
            "{}{:.3},{:.3},{:.3},{}",
            if is_warmup { "Tag=warmup," } else { "" },
            offset.as_secs_f64(),
            second.length.as_secs_f64(),
            totals.latency.max() as f64 / NS_PER_MS,
            histogram::encode_histogram(&totals.latency)
        );
    }
    rows
}

pub const CSV_HEAD: &str =
    "second,at_ns,is_warmup,offered,ok,errors,p50_us,p99_us,max_us,send_lag_p99_us\n";

/// One second as CSV. Percentiles count failed requests as infinitely slow, `inf`; they are empty
/// if no request ended. Warm-up requests have separate rows.
pub fn csv_rows(second: &LoadSecond) -> String {
    let rows = row_phases(second).into_iter();
    rows.map(|(is_warmup, totals)| csv_row(second, is_warmup, totals))
        .collect()
}

fn csv_row(second: &LoadSecond, is_warmup: bool, totals: &LoadTotals) -> String {
    let micros = |d: Duration| format!("{:.1}", d.as_nanos() as f64 / 1e3);
    let at = |h: &Histogram, failed, q| match histogram::quantile_with_failures(h, failed, q) {
        Some(value) => micros(value),
        None if failed > 0 => "inf".to_owned(),
        None => String::new(),
    };
    let failed = totals.failed_requests() + totals.unfinished;
    format!(
        "{},{},{is_warmup},{},{},{},{},{},{},{}\n",
        second.index,
        second.at_ns,
        totals.scheduled,
        totals.ok,
        totals.failed_requests(),
        at(&totals.latency, failed, 0.5),
        at(&totals.latency, failed, 0.99),
        at(&totals.latency, 0, 1.0),
        at(&totals.send_lag, 0, 0.99),
    )
}

fn row_phases(second: &LoadSecond) -> Vec<(bool, &LoadTotals)> {
    let Some(phases) = &second.phases else {
        return vec![(second.is_warmup, &second.totals)];
    };
    let is_empty =
        |t: &LoadTotals| t.scheduled == 0 && t.ok + t.failed_requests() == 0 && t.unfinished == 0;
    [true, false]
        .into_iter()
        .zip(phases.iter())
        .filter(|(is_warmup, totals)| *is_warmup == second.is_warmup || !is_empty(totals))
        .collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::outcome::ErrorKind;

    #[allow(clippy::field_reassign_with_default, reason = "one field is private")]
    fn second() -> LoadSecond {
        let mut totals = LoadTotals::default();
        totals.scheduled = 4;
        totals.ok = 4;
        for ms in [1, 2, 3, 100] {
            totals.latency.saturating_record(ms * 1_000_000);
        }
        LoadSecond {
            index: 0,
            at_ns: 5_000_000_000,
            length: Duration::from_secs(1),
            is_warmup: false,
            totals,
            phases: None,
        }
    }

    /// The same with a failed request and one of the warm-up, of 7 ms.
    fn last_of_warm_up() -> LoadSecond {
        let mut warm_up = LoadTotals {
            scheduled: 0,
            ok: 1,
            ..LoadTotals::default()
        };
        warm_up.latency.saturating_record(7_000_000);
        let mut measured = second().totals;
        measured.scheduled += 1;
        measured.count_failure(ErrorKind::Timeout);
        let mut totals = measured.clone();
        totals.add_outcomes(&warm_up);
        LoadSecond {
            totals,
            phases: Some(Box::new([warm_up, measured])),
            ..second()
        }
    }

    #[test]
    fn the_percentile_text_has_the_usual_form() {
        insta::assert_snapshot!(to_hgrm(&second().totals.latency, 0), @"
               Value   Percentile   TotalCount 1/(1-Percentile)

               1.000     0.000000            1         1.00
               1.000     0.100000            1         1.11
               1.000     0.200000            1         1.25
               2.001     0.300000            2         1.43
               2.001     0.400000            2         1.67
               2.001     0.500000            2         2.00
               3.000     0.550000            3         2.22
               3.000     0.600000            3         2.50
               3.000     0.650000            3         2.86
               3.000     0.700000            3         3.33
             100.008     0.750000            4         4.00
             100.008     1.000000            4          inf
        #[Mean    =       26.494, StdDeviation   =       42.430]
        #[Max     =      100.008, Total count    =            4]
        #[Buckets =           32, SubBuckets     =         2048]
        ");
    }

    #[test]
    fn the_interval_log_reads_back_with_a_reader_of_others() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let log = hlog_head(start) + &hlog_rows(Duration::from_secs(7), &second());
        let entries: Result<Vec<_>, _> = IntervalLogIterator::new(log.as_bytes()).collect();
        let entries = entries.unwrap();
        let Some(LogEntry::Interval(row)) = entries.last() else {
            panic!("{entries:?}");
        };
        assert_eq!(row.start_timestamp(), Duration::from_secs(7));
        assert_eq!(row.duration(), Duration::from_secs(1));
        let read = histogram::decode_histogram(row.encoded_histogram()).unwrap();
        assert_eq!(read, second().totals.latency);
    }

    #[test]
    fn percentiles_run_over_failed_requests_too() {
        insta::assert_snapshot!(to_hgrm(&second().totals.latency, 1), @"
               Value   Percentile   TotalCount 1/(1-Percentile)

               1.000     0.000000            1         1.00
               1.000     0.080000            1         1.09
               1.000     0.160000            1         1.19
               2.001     0.240000            2         1.32
               2.001     0.320000            2         1.47
               2.001     0.400000            2         1.67
               3.000     0.440000            3         1.79
               3.000     0.480000            3         1.92
               3.000     0.520000            3         2.08
               3.000     0.560000            3         2.27
             100.008     0.600000            4         2.50
             100.008     0.800000            4         5.00
        #[Mean    =       26.494, StdDeviation   =       42.430]
        #[Max     =      100.008, Total count    =            4]
        #[Buckets =           32, SubBuckets     =         2048]
        #[Failed  =            1]
        ");
    }

    #[test]
    fn the_interval_log_keeps_the_warm_up_apart_and_counts_failures() {
        let log = hlog_rows(Duration::from_secs(7), &last_of_warm_up());
        assert!(log.contains("\n#[Failed: 1 ("), "{log}");
        let entries: Result<Vec<_>, _> = IntervalLogIterator::new(log.as_bytes()).collect();
        let rows: Vec<_> = entries
            .unwrap()
            .into_iter()
            .filter_map(|entry| match entry {
                LogEntry::Interval(row) => Some(row),
                _ => None,
            })
            .collect();
        let tags: Vec<_> = rows
            .iter()
            .map(|r| r.tag().map(|t| t.to_string()))
            .collect();
        assert_eq!(tags, [Some("warmup".to_owned()), None]);
        let measured = histogram::decode_histogram(rows[1].encoded_histogram()).unwrap();
        assert_eq!(measured, second().totals.latency);
        let warm_up = histogram::decode_histogram(rows[0].encoded_histogram()).unwrap();
        assert_eq!(warm_up.len(), 1);
    }

    #[test]
    fn a_csv_row_has_a_field_for_each_name() {
        let row = csv_rows(&second());
        assert_eq!(row.split(',').count(), CSV_HEAD.split(',').count());
        assert_eq!(row, "0,5000000000,false,4,4,0,2000.9,100007.9,100007.9,\n");
        assert_eq!(
            csv_rows(&last_of_warm_up()),
            "0,5000000000,true,0,1,0,7000.1,7000.1,7000.1,\n\
             0,5000000000,false,5,4,1,3000.3,inf,100007.9,\n"
        );
    }
}
