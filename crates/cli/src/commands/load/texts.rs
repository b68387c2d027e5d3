//! How the arguments of `loadline load` are written: rates, durations, CPU lists.

use std::time::Duration;

use loadline_analysis::slo::parse_duration;
use loadline_load::{Pacing, Part, Segment, Think};

/// The rate over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// `5000/s`.
    Constant(f64),
    /// `100/s..1000/s`: linear over the duration.
    Ramp(f64, f64),
    /// `100/s,200/s,400/s`: equal parts of the duration.
    Steps(Vec<f64>),
}

impl Shape {
    /// The rate it begins with.
    pub(super) fn first(&self) -> f64 {
        match self {
            Self::Constant(rate) | Self::Ramp(rate, _) => *rate,
            Self::Steps(rates) => rates.first().copied().unwrap_or_default(),
        }
    }

    /// Its mean.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Ramp(from, to) => (from + to) / 2.0,
            Self::Steps(rates) => rates.iter().sum::<f64>() / rates.len() as f64,
        }
    }

    /// Over a duration.
    pub(super) fn segments(&self, duration: Duration) -> Vec<Segment> {
        match self {
            Self::Constant(rate) => vec![Segment::constant(*rate, duration)],
            Self::Ramp(from, to) => vec![Segment {
                from: *from,
                to: *to,
                duration,
            }],
            Self::Steps(rates) => {
                let part = duration / rates.len() as u32;
                rates.iter().map(|r| Segment::constant(*r, part)).collect()
            }
        }
    }

    /// Over as long as so many requests take; `None` where that is no length that a run can have.
    pub(super) fn segments_of(&self, requests: u64) -> Option<Vec<Segment>> {
        let seconds = requests as f64 / self.mean();
        // Down to whole ns: a part of one too much is room for one more request.
        let mut nanos = Some((seconds * 1e9) as u64).filter(|_| seconds < LONGEST)?;
        loop {
            let segments = self.segments(Duration::from_nanos(nanos));
            let due: f64 = segments.iter().map(Segment::requests).sum();
            if due <= requests as f64 {
                return Some(segments);
            }
            nanos = nanos.checked_sub(1)?;
        }
    }
}

/// A run that counts its requests is no longer than a year, in s.
const LONGEST: f64 = 366.0 * 86_400.0;

/// Reads `5000/s`, `100/s..1000/s`, `100/s,200/s`.
pub(super) fn shape(text: &str) -> Result<Shape, String> {
    if let Some((from, to)) = text.split_once("..") {
        return Ok(Shape::Ramp(rate(from)?, rate(to)?));
    }
    let rates: Result<Vec<f64>, String> = text.split(',').map(rate).collect();
    match rates?.as_slice() {
        [one] => Ok(Shape::Constant(*one)),
        several => Ok(Shape::Steps(several.to_vec())),
    }
}

/// Reads `5000/s`, `5000`, `30/m`; requests a second.
fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
    let per = match unit {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("the unit is none of /s, /m, /h".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate / per),
        _ => Err("it is no rate above 0; write for example 5000/s or 30/m".to_owned()),
    }
}

/// Reads `0/4`: the first of four parts.
pub(super) fn part(text: &str) -> Result<Part, String> {
    let read = text.split_once('/').and_then(|(index, of)| {
        Some(Part {
            index: index.parse().ok()?,
            of: of.parse().ok()?,
        })
    });
    read.filter(|p| p.index < p.of)
        .ok_or_else(|| "it is no part; the first of four is 0/4, the last 3/4".to_owned())
}

/// Reads a factor above 0.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok();
    let right = factor.filter(|f| f.is_finite() && *f > 0.0);
    right.ok_or_else(|| "it is no number above 0".to_owned())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "it is no duration; write for example 30s or 5m".to_owned())
}

/// Reads `100ms` or `50ms..150ms`.
pub(super) fn think(text: &str) -> Result<Think, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (duration(from)?, duration(to)?);
    match from <= to {
        true => Ok(Think { from, to }),
        false => Err("the shorter pause comes first".to_owned()),
    }
}

pub(super) fn pacing(text: &str) -> Result<Pacing, String> {
    match text {
        "auto" => Ok(Pacing::Auto),
        "exact" => Ok(Pacing::Exact),
        "spin" => Ok(Pacing::Spin),
        _ => duration(text)
            .map(|quantum| Pacing::Quantum { quantum })
            .map_err(|_| "it is none of auto, exact, spin, or a duration such as 1ms".to_owned()),
    }
}

pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("there is no colon; write for example 'Accept: text/html'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// CPU numbers, from `1` or `0,2-3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CpuList(pub(super) Vec<u32>);

pub(super) fn cpus(text: &str) -> Result<CpuList, String> {
    let mut list = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < 1024 => list.extend(first..=last),
            _ => return Err("it is no list of CPUs; write for example 1 or 0,2-3".to_owned()),
        }
    }
    Ok(CpuList(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_shape() {
        assert_eq!(shape("5000/s"), Ok(Shape::Constant(5000.0)));
        assert_eq!(shape("30/m"), Ok(Shape::Constant(0.5)));
        assert_eq!(shape("2.5"), Ok(Shape::Constant(2.5)));
        assert_eq!(shape("10/s..1000/s"), Ok(Shape::Ramp(10.0, 1000.0)));
        assert_eq!(shape("1,2/s,3"), Ok(Shape::Steps(vec![1.0, 2.0, 3.0])));
        for text in ["0", "-1", "x", "5/d", "inf", "1..", "1,,2", ""] {
            assert!(shape(text).is_err(), "{text}");
        }
        let steps = Shape::Steps(vec![1.0, 3.0]).segments(Duration::from_secs(4));
        assert_eq!(steps[1], Segment::constant(3.0, Duration::from_secs(2)));
    }

    #[test]
    fn a_number_of_requests_is_kept_at_every_rate() {
        // Slot k is sent where k < the requests due: one for each begun one.
        let sent = |text: &str, requests| {
            let segments = shape(text).unwrap().segments_of(requests).unwrap();
            segments.iter().map(Segment::requests).sum::<f64>().ceil() as u64
        };
        let shapes = [
            "3/s",
            "700/s",
            "30/m",
            "70/h",
            "9/s..31/s",
            "1/s,3/s,7/s",
            "100000/s",
        ];
        for text in shapes {
            for requests in [1, 2, 3, 20, 999, 10_000, 123_457] {
                assert_eq!(sent(text, requests), requests, "{text}");
            }
        }
        assert_eq!(shape("7/h").unwrap().segments_of(u64::MAX), None);
        assert_eq!(shape("5e-324").unwrap().segments_of(1), None);
    }

    #[test]
    fn lists_headers_and_parts_are_read() {
        assert_eq!(cpus("0,2-3"), Ok(CpuList(vec![0, 2, 3])));
        assert_eq!(header("A: b:c"), Ok(("A".to_owned(), "b:c".to_owned())));
        let millis = Duration::from_millis;
        let (from, to) = (millis(50), millis(150));
        assert_eq!(think("50ms..150ms"), Ok(Think { from, to }));
        assert_eq!(think("50ms").map(|t| t.to), Ok(from));
        assert!(think("150ms..50ms").is_err());
        assert_eq!(part("3/4"), Ok(Part { index: 3, of: 4 }));
        for text in ["", "3-2", "a", "1-"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        for text in ["4/4", "0/0", "1", "a/b"] {
            assert!(part(text).is_err(), "{text}");
        }
    }
}
