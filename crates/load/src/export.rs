//! Files that other tools read: `.hgrm` percentiles, `.hlog` interval log, CSV a second.
//!
//! Owns their text forms. Source of both histogram forms: HdrHistogram (`outputPercentileDistribution`
//! and HistogramLogWriter, log format 1.3); the crate `hdrhistogram` writes the log only behind
//! two borrows for its whole life, so the four header lines and the rows are written here.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use crate::histogram::{self, Histogram};
use crate::outcome::Second;

/// Steps for each halving of the distance to 100 %, as the usual tools print.
const TICKS_PER_HALF: u32 = 5;
/// ns in the ms that both forms print.
const NS_PER_MS: f64 = 1e6;

/// The percentile distribution in ms, as the public plotter reads it.
pub fn hgrm(histogram: &Histogram) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_hgrm(&mut out, histogram);
    out
}

fn write_hgrm(out: &mut String, histogram: &Histogram) -> std::fmt::Result {
    writeln!(
        out,
        "{:>12} {:>12} {:>12} {:>12}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for row in histogram.iter_quantiles(TICKS_PER_HALF) {
        total += row.count_since_last_iteration();
        let value = row.value_iterated_to().min(histogram.max()) as f64 / NS_PER_MS;
        let quantile = row.quantile_iterated_to();
        let rest = match quantile < 1.0 {
            true => format!("{:12.2}", 1.0 / (1.0 - quantile)),
            false => format!("{:>12}", "inf"),
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
    )
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

/// One second of an interval log; `offset` is its beginning, from the run's start. The values
/// are ns, the maximum is printed in ms as the standard readers expect.
pub fn hlog_row(offset: Duration, second: &Second) -> String {
    let latency = &second.totals.latency;
    format!(
        "{:.3},{:.3},{:.3},{}\n",
        offset.as_secs_f64(),
        second.length.as_secs_f64(),
        latency.max() as f64 / NS_PER_MS,
        histogram::encode(latency)
    )
}

/// The first line of the CSV; one [`csv_row`] follows for each second.
pub const CSV_HEAD: &str =
    "second,at_ns,is_warmup,offered,ok,errors,p50_us,p99_us,max_us,send_lag_p99_us\n";

/// One second as CSV; empty fields where there was no good response.
pub fn csv_row(second: &Second) -> String {
    let totals = &second.totals;
    let at = |h: &Histogram, q| {
        let value = histogram::quantile(h, 0, q);
        value.map_or(String::new(), |d| {
            format!("{:.1}", d.as_nanos() as f64 / 1e3)
        })
    };
    format!(
        "{},{},{},{},{},{},{},{},{},{}\n",
        second.index,
        second.at_ns,
        second.is_warmup,
        totals.scheduled,
        totals.ok,
        totals.failed(),
        at(&totals.latency, 0.5),
        at(&totals.latency, 0.99),
        at(&totals.latency, 1.0),
        at(&totals.send_lag, 0.99),
    )
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::outcome::Totals;

    #[allow(clippy::field_reassign_with_default, reason = "one field is private")]
    fn second() -> Second {
        let mut totals = Totals::default();
        totals.scheduled = 4;
        totals.ok = 4;
        for ms in [1, 2, 3, 100] {
            totals.latency.saturating_record(ms * 1_000_000);
        }
        Second {
            index: 0,
            at_ns: 5_000_000_000,
            length: Duration::from_secs(1),
            is_warmup: false,
            totals,
        }
    }

    #[test]
    fn the_percentile_text_has_the_usual_form() {
        insta::assert_snapshot!(hgrm(&second().totals.latency), @"
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
        let log = hlog_head(start) + &hlog_row(Duration::from_secs(7), &second());
        let entries: Result<Vec<_>, _> = IntervalLogIterator::new(log.as_bytes()).collect();
        let entries = entries.unwrap();
        let Some(LogEntry::Interval(row)) = entries.last() else {
            panic!("{entries:?}");
        };
        assert_eq!(row.start_timestamp(), Duration::from_secs(7));
        assert_eq!(row.duration(), Duration::from_secs(1));
        let read = histogram::decode(row.encoded_histogram()).unwrap();
        assert_eq!(read, second().totals.latency);
    }

    #[test]
    fn a_csv_row_has_a_field_for_each_name() {
        let row = csv_row(&second());
        assert_eq!(row.split(',').count(), CSV_HEAD.split(',').count());
        assert_eq!(row, "0,5000000000,false,4,4,0,2000.9,100007.9,100007.9,\n");
    }
}
