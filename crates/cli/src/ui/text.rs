//! Short texts for people: durations, rates, and foreign text made safe for a terminal.

use std::time::Duration;

pub use loadline_report::format::short_id as short;

/// `850 ms`, `12.4 s`, `3 min 05 s`, `2 h 10 min`.
pub fn format_span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!(
            "{:.0} min {:02.0} s",
            (s / 60.0).floor(),
            (s % 60.0).floor()
        ),
        s => format!(
            "{:.0} h {:02.0} min",
            (s / 3600.0).floor(),
            (s % 3600.0 / 60.0).floor()
        ),
    }
}

/// A latency: `0.8 ms`, `23 ms`, `1.20 s`.
pub fn format_latency(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well_at_every_length() {
        let texts = [0.25, 12.44, 185.0, 7800.0].map(|s| format_span(Duration::from_secs_f64(s)));
        assert_eq!(texts, ["250 ms", "12.4 s", "3 min 05 s", "2 h 10 min"]);
        let texts = [0.8, 23.4, 1200.0].map(|ms| format_latency(Duration::from_secs_f64(ms / 1e3)));
        assert_eq!(texts, ["0.8 ms", "23 ms", "1.20 s"]);
    }
}
