//! The text forms of a load's values: rates, times, pauses, pacing.
//!
//! Owns one parser for each, which flags, experiment files and profiles share; printed values parse
//! back.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::slo::{meant_duration, parse_duration, print_duration};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outcome::ErrorKind;
use crate::plan::{LoadModel, Pacing, ThinkTime};
use crate::schedule::RateSegment;
use crate::target::LoadTarget;

const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// The highest rate, in requests a second.
const RATE_MAX: f64 = 1e8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositiveTime(pub Duration);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOrNone(pub Duration);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositiveFactor(pub f64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcCode(pub u16);

#[derive(Debug, Clone, PartialEq)]
pub enum RateShape {
    /// `5000/s`.
    Constant(f64),
    /// `100/s..1000/s`: linear over the duration.
    Ramp(f64, f64),
    /// `100/s,200/s,400/s`: equal parts of the duration.
    Steps(Vec<f64>),
}

/// How long a peak lasts unless said.
const PEAK: Duration = Duration::from_secs(10);

/// A burst after the judged load: `200/s`, `2x`, `2x:10s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakLoad {
    height: PeakHeight,
    /// Above 0.
    pub duration: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum PeakHeight {
    /// Requests a second.
    Rate(f64),
    /// Times the highest rate of the judged load.
    Factor(PositiveFactor),
}

impl PeakLoad {
    /// Whether it stays as high, whatever rate the judged load has.
    pub fn is_absolute(&self) -> bool {
        matches!(self.height, PeakHeight::Rate(_))
    }

    /// The burst behind a load of this model. Errors: Why there is none.
    pub fn model_after(&self, judged: &LoadModel) -> Result<LoadModel, String> {
        let LoadModel::Open { arrivals, .. } = judged else {
            return Err(
                "the load is closed, so it has no rate to rise above; give one: --rate 100/s"
                    .to_owned(),
            );
        };
        let base = judged.peak().unwrap_or_default();
        let rate = match self.height {
            PeakHeight::Rate(rate) => rate,
            PeakHeight::Factor(PositiveFactor(factor)) => factor * base,
        };
        if rate > RATE_MAX {
            return Err(rate_problem(&format!("{rate}/s"), &rate.to_string()));
        }
        if rate > base {
            Ok(LoadModel::Open {
                segments: vec![RateSegment::constant_rate(rate, self.duration)],
                arrivals: *arrivals,
            })
        } else {
            Err(format!(
                "the peak is {rate}/s, and the load reaches {base}/s already; write a higher one: 2x is twice as much (--peak 2x)"
            ))
        }
    }
}

impl FromStr for PeakLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `2x,10s` is near.
        let (height, duration) = match text.split_once([':', ',']) {
            Some((height, length)) => (height, length.trim().parse::<PositiveTime>()?.0),
            None => (text, PEAK),
        };
        let height = match height.trim().strip_suffix(['x', 'X']) {
            Some(factor) => PeakHeight::Factor(factor.parse()?),
            None => PeakHeight::Rate(parse_rate(height)?),
        };
        Ok(Self { height, duration })
    }
}

impl fmt::Display for PeakLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.height {
            PeakHeight::Rate(rate) => write!(f, "{rate}/s"),
            PeakHeight::Factor(factor) => write!(f, "{factor}x"),
        }?;
        write!(f, ":{}", print_duration(self.duration))
    }
}

impl GrpcCode {
    fn name(self) -> String {
        let kind = usize::from(self.0).checked_sub(1);
        let kind = kind.and_then(|nth| ErrorKind::GRPC.get(nth));
        let name = kind.and_then(|kind| kind.name().strip_prefix("grpc_"));
        name.unwrap_or("ok").to_ascii_uppercase()
    }
}

impl FromStr for GrpcCode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut codes = (0..=ErrorKind::GRPC.len() as u16).map(Self);
        let found = codes
            .find(|code| text.parse() == Ok(code.0) || text.eq_ignore_ascii_case(&code.name()));
        found.ok_or_else(|| {
            format!("`{text}` is not a gRPC status; write a name or number: NOT_FOUND or 5")
        })
    }
}

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let right = parse_duration(text).filter(|time| *time <= LONGEST);
    right.ok_or_else(|| {
        let meant = meant_duration(text).map(|meant| format!(", here {meant}"));
        let meant = meant.unwrap_or_default();
        format!(
            "`{text}` is not a length of time; write 500ms, 10s, 2m or 1.5h, at most a year{meant}"
        )
    })
}

impl FromStr for PositiveTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_time(text)? {
            Duration::ZERO => Err(format!("`{text}` is zero; write 500ms, 10s, 2m or 1.5h")),
            time => Ok(Self(time)),
        }
    }
}

impl FromStr for TimeOrNone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_time(text).map(Self)
    }
}

impl fmt::Display for PositiveTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_duration(self.0))
    }
}

impl fmt::Display for TimeOrNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::ZERO => f.write_str("0s"),
            time => f.write_str(&print_duration(time)),
        }
    }
}

impl FromStr for PositiveFactor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let factor = text.parse::<f64>().ok();
        let right = factor.filter(|f| f.is_finite() && *f > 0.0);
        let right = right.ok_or_else(|| format!("`{text}` is not a number above 0; write 1.2"));
        right.map(Self)
    }
}

impl fmt::Display for PositiveFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub fn parse_rate(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let per = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let rate = number.trim().parse::<f64>().ok().map(|n| n / per);
    rate.filter(|r| *r > 0.0 && *r <= RATE_MAX)
        .ok_or_else(|| rate_problem(text, number))
}

fn rate_problem(text: &str, number: &str) -> String {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == ' ';
    let digits = number.trim().trim_end_matches(is_unit);
    let thousands = if number.trim().ends_with('k') {
        1e3
    } else {
        1.0
    };
    match digits.parse::<f64>().map(|rate| rate * thousands) {
        Ok(rate) if rate > RATE_MAX => {
            format!("`{text}` is more than one generator can send, {RATE_MAX:.0}/s")
        }
        Ok(rate) if rate > 0.0 => format!("`{text}` is not a rate; did you mean {rate}/s?"),
        _ => format!(
            "`{text}` is not a rate; write requests a second above 0: 300/s, also 30/m or 7/h"
        ),
    }
}

impl FromStr for RateShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((from, to)) = text.split_once("..") {
            return Ok(Self::Ramp(parse_rate(from)?, parse_rate(to)?));
        }
        let rates: Result<Vec<f64>, String> = text.split(',').map(parse_rate).collect();
        match rates?.as_slice() {
            [one] => Ok(Self::Constant(*one)),
            several => Ok(Self::Steps(several.to_vec())),
        }
    }
}

impl fmt::Display for RateShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => write!(f, "{rate}/s"),
            Self::Ramp(from, to) => write!(f, "{from}/s..{to}/s"),
            Self::Steps(rates) => {
                let rates: Vec<String> = rates.iter().map(|rate| format!("{rate}/s")).collect();
                f.write_str(&rates.join(","))
            }
        }
    }
}

impl RateShape {
    fn mean(&self) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Ramp(from, to) => (from + to) / 2.0,
            Self::Steps(rates) => rates.iter().sum::<f64>() / rates.len() as f64,
        }
    }

    pub(super) fn segments_over(&self, duration: Duration) -> Vec<RateSegment> {
        match self {
            Self::Constant(rate) => vec![RateSegment::constant_rate(*rate, duration)],
            Self::Ramp(from, to) => vec![RateSegment {
                from: *from,
                to: *to,
                duration,
            }],
            Self::Steps(rates) => {
                let part = duration / rates.len() as u32;
                rates
                    .iter()
                    .map(|r| RateSegment::constant_rate(*r, part))
                    .collect()
            }
        }
    }

    /// Over the time that this many requests take; `None` if a run cannot be that long.
    pub(super) fn segments_for_requests(&self, requests: u64) -> Option<Vec<RateSegment>> {
        let seconds = requests as f64 / self.mean();
        // Down to whole ns: a part of one too much is room for one more request.
        let mut nanos = Some((seconds * 1e9) as u64).filter(|_| seconds < LONGEST.as_secs_f64())?;
        loop {
            let segments = self.segments_over(Duration::from_nanos(nanos));
            let due: f64 = segments.iter().map(RateSegment::due_requests).sum();
            if due <= requests as f64 {
                return Some(segments);
            }
            nanos = nanos.checked_sub(1)?;
        }
    }
}

impl FromStr for ThinkTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (parse_time(from)?, parse_time(to)?);
        if from <= to {
            Ok(Self { from, to })
        } else {
            Err(format!("`{text}`: the shorter pause comes first"))
        }
    }
}

impl fmt::Display for ThinkTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (TimeOrNone(self.from), TimeOrNone(self.to));
        if self.from == self.to {
            from.fmt(f)
        } else {
            write!(f, "{from}..{to}")
        }
    }
}

impl FromStr for Pacing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "exact" => Ok(Self::Exact),
            "spin" => Ok(Self::Spin),
            _ => parse_time(text)
                .map(|quantum| Self::Quantum { quantum })
                .map_err(|_| {
                    format!(
                        "`{text}` is not one of auto, exact, spin, or a length of time such as 1ms"
                    )
                }),
        }
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exact => f.write_str("exact"),
            Self::Spin => f.write_str("spin"),
            Self::Quantum { quantum } => f.write_str(&print_duration(*quantum)),
        }
    }
}

macro_rules! text_form {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                as_text::deserialize(deserializer)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }
    )*};
}

text_form!(
    GrpcCode,
    LoadTarget,
    PeakLoad,
    PositiveFactor,
    PositiveTime,
    RateShape,
    TimeOrNone
);

/// Serde of a value by its text form. A wrong value is refused while the file is read, so that the
/// parser of the file knows the place.
pub mod as_text {
    use std::fmt::{self, Display};
    use std::marker::PhantomData;
    use std::str::FromStr;

    use serde::de::{self, Deserializer, Visitor};
    use serde::ser::{Serialize, Serializer};

    struct TextVisitor<T>(PhantomData<T>);

    impl<T: FromStr<Err: Display>> Visitor<'_> for TextVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text in quotes")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }
    }

    pub fn deserialize<'de, T, D>(d: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        d.deserialize_any(TextVisitor(PhantomData))
    }

    /// The same for an `Option` that is left out where it is `None`.
    pub mod opt {
        use super::*;

        pub fn serialize<T: Display, S: Serializer>(
            value: &Option<T>,
            s: S,
        ) -> Result<S::Ok, S::Error> {
            value.as_ref().map(ToString::to_string).serialize(s)
        }

        pub fn deserialize<'de, T, D>(d: D) -> Result<Option<T>, D::Error>
        where
            T: FromStr<Err: Display>,
            D: Deserializer<'de>,
        {
            super::deserialize(d).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<RateShape, String> {
        text.parse()
    }

    #[test]
    fn rates_have_a_shape() {
        assert_eq!(shape("5000/s"), Ok(RateShape::Constant(5000.0)));
        assert_eq!(shape("30/m"), Ok(RateShape::Constant(0.5)));
        assert_eq!(shape("2.5"), Ok(RateShape::Constant(2.5)));
        assert_eq!(shape("10/s..1000/s"), Ok(RateShape::Ramp(10.0, 1000.0)));
        assert_eq!(shape("1,2/s,3"), Ok(RateShape::Steps(vec![1.0, 2.0, 3.0])));
        for text in ["0", "-1", "x", "5/d", "inf", "1..", "1,,2", ""] {
            assert!(shape(text).is_err(), "{text}");
        }
        let steps = RateShape::Steps(vec![1.0, 3.0]).segments_over(Duration::from_secs(4));
        assert_eq!(
            steps[1],
            RateSegment::constant_rate(3.0, Duration::from_secs(2))
        );
    }

    #[test]
    fn what_is_printed_parses_back() {
        for text in ["5000/s", "0.5/s", "10/s..1000/s", "1/s,2/s"] {
            assert_eq!(shape(text).map(|s| s.to_string()), Ok(text.to_owned()));
        }
        for text in ["0s", "1.5s", "250us"] {
            let time = text.parse::<TimeOrNone>().map(|t| t.to_string());
            assert_eq!(time, Ok(text.to_owned()));
        }
        for text in ["100ms", "0s..150ms"] {
            let think = text.parse::<ThinkTime>().map(|t| t.to_string());
            assert_eq!(think, Ok(text.to_owned()));
        }
        for text in ["200/s:10s", "2x:1.5s"] {
            let peak = text.parse::<PeakLoad>().map(|t| t.to_string());
            assert_eq!(peak, Ok(text.to_owned()));
        }
        assert_eq!("2x".parse::<PeakLoad>(), "2x:10s".parse());
        for text in ["auto", "exact", "spin", "1ms"] {
            let pacing = text.parse::<Pacing>().map(|t| t.to_string());
            assert_eq!(pacing, Ok(text.to_owned()));
        }
        assert!("150ms..50ms".parse::<ThinkTime>().is_err());
        assert!("0s".parse::<PositiveTime>().is_err());
        assert!("10000h".parse::<PositiveTime>().is_err());
    }

    #[test]
    fn a_peak_is_above_the_load_before_it() {
        let minute = Duration::from_secs(60);
        let judged = LoadModel::Open {
            segments: shape("50/s,100/s").unwrap().segments_over(minute),
            arrivals: crate::schedule::ArrivalPattern::Poisson,
        };
        let burst = |text: &str, judged: &LoadModel| {
            let peak = text.parse::<PeakLoad>()?;
            peak.model_after(judged)
                .map(|burst| (burst.peak(), burst.scheduled_duration()))
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(burst("2x", &judged), Ok((Some(200.0), seconds(10))));
        assert_eq!(burst("120/s:3s", &judged), Ok((Some(120.0), seconds(3))));
        for text in [
            "100", "1x", "0.5x", "1e9x", "2x:0s", "2x:", "0x", "x", "-2x", "2x:1h:1h", "",
        ] {
            assert!(burst(text, &judged).is_err(), "{text}");
        }
        assert!(burst("2x", &LoadModel::ClosedFor { duration: minute }).is_err());
    }

    #[test]
    fn a_number_of_requests_is_kept_at_every_rate() {
        // Slot k is sent where k < the requests due: one for each begun one.
        let sent = |text: &str, requests| {
            let segments = shape(text)
                .unwrap()
                .segments_for_requests(requests)
                .unwrap();
            segments
                .iter()
                .map(RateSegment::due_requests)
                .sum::<f64>()
                .ceil() as u64
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
        assert_eq!(shape("7/h").unwrap().segments_for_requests(u64::MAX), None);
        assert_eq!(shape("5e-324").unwrap().segments_for_requests(1), None);
    }
}
