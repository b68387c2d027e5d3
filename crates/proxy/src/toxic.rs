//! What can be wrong between an application and what it depends on.
//!
//! Owns the types, and how they are called. Names and meaning are Toxiproxy's (README, "Toxics",
//! version 2.12), so that who knows those knows these: `down` there is a proxy that is disabled.
//! Units are types here: times and bytes, where Toxiproxy has numbers of ms and KB.

use std::fmt;
use std::time::Duration;

use loadline_analysis::slo::print_duration;
use serde::{Deserialize, Serialize};

use crate::delay::Delay;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Toxic {
    pub effect: ToxicEffect,
    pub stream: ToxicStream,
    pub toxicity: f64,
    pub span: Option<ToxicSpan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToxicStream {
    Upstream,
    Downstream,
}

impl ToxicStream {
    pub fn stream_name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToxicSpan {
    pub at: Duration,
    pub length: Duration,
}

impl ToxicSpan {
    pub fn end_time(self) -> Duration {
        self.at.saturating_add(self.length)
    }
}

/// For people: `at 20s for 10s`.
impl fmt::Display for ToxicSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {} for {}",
            print_duration(self.at),
            print_duration(self.length)
        )
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToxicEffect {
    /// Bytes come later.
    Latency(Delay),
    /// Bytes come no faster.
    Bandwidth {
        rate: u64,
    },
    SlowClose {
        delay: Duration,
    },
    /// A black hole: no byte arrives. A connection that lost some ends with the toxic.
    Timeout {
        /// The connection is closed this long after it began to be in the hole; 0 is never.
        timeout: Duration,
    },
    ResetPeer {
        timeout: Duration,
    },
    Slicer {
        average_size: u64,
        size_variation: u64,
        delay: Duration,
    },
    /// The connection is closed after this many bytes.
    LimitData {
        bytes: u64,
    },
    /// Connections are refused, and open ones are reset.
    Down,
}

impl ToxicEffect {
    pub const NAMES: [&str; 8] = [
        "latency",
        "bandwidth",
        "slow_close",
        "timeout",
        "reset_peer",
        "slicer",
        "limit_data",
        "down",
    ];

    pub fn effect_name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Latency(_) => 0,
            Self::Bandwidth { .. } => 1,
            Self::SlowClose { .. } => 2,
            Self::Timeout { .. } => 3,
            Self::ResetPeer { .. } => 4,
            Self::Slicer { .. } => 5,
            Self::LimitData { .. } => 6,
            Self::Down => 7,
        }]
    }

    /// Whether it is about connections as a whole, so that it has no direction.
    pub fn is_of_both(&self) -> bool {
        matches!(self, Self::Down | Self::ResetPeer { .. })
    }
}

/// For people: `latency 20ms`.
impl fmt::Display for ToxicEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.effect_name())?;
        match self {
            Self::Latency(delay) => write!(f, " {delay}"),
            Self::Bandwidth { rate } => write!(f, " {} KB/s", *rate as f64 / 1000.0),
            Self::SlowClose { delay } => write!(f, " {}", print_duration(*delay)),
            Self::Timeout { timeout } if timeout.is_zero() => f.write_str(" without an end"),
            Self::Timeout { timeout } => write!(f, " {}", print_duration(*timeout)),
            Self::ResetPeer { timeout } => write!(f, " after {}", print_duration(*timeout)),
            Self::Slicer {
                average_size,
                size_variation,
                delay,
            } => write!(
                f,
                " {average_size} ± {size_variation} bytes, {} apart",
                print_duration(*delay)
            ),
            Self::LimitData { bytes } => write!(f, " {bytes} bytes"),
            Self::Down => Ok(()),
        }
    }
}

/// For people: `latency 20ms downstream, on 50 % of connections, at 20s for 10s`.
impl fmt::Display for Toxic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        if !self.effect.is_of_both() {
            write!(f, " {}", self.stream.stream_name())?;
        }
        if self.toxicity < 1.0 {
            let share = (self.toxicity * 1e4).round() / 100.0;
            write!(f, ", on {share} % of connections")?;
        }
        match self.span {
            Some(span) => write!(f, ", {span}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_toxic_reads_as_a_line() {
        let ms = Duration::from_millis;
        let effects = [
            ToxicEffect::Latency(Delay::Fixed { latency: ms(20) }),
            ToxicEffect::Latency(Delay::Uniform {
                latency: ms(20),
                jitter: ms(5),
            }),
            ToxicEffect::Latency(Delay::Normal {
                latency: ms(20),
                jitter: ms(5),
            }),
            ToxicEffect::Latency(Delay::Pareto {
                latency: ms(5),
                shape: 2.5,
            }),
            ToxicEffect::Bandwidth { rate: 100_000 },
            ToxicEffect::SlowClose { delay: ms(500) },
            ToxicEffect::Timeout { timeout: ms(0) },
            ToxicEffect::Timeout { timeout: ms(1500) },
            ToxicEffect::ResetPeer { timeout: ms(0) },
            ToxicEffect::Slicer {
                average_size: 64,
                size_variation: 8,
                delay: ms(1),
            },
            ToxicEffect::LimitData { bytes: 4096 },
            ToxicEffect::Down,
        ];
        let text: Vec<String> = effects
            .into_iter()
            .map(|effect| {
                let toxic = Toxic {
                    effect,
                    stream: ToxicStream::Downstream,
                    toxicity: 1.0,
                    span: None,
                };
                toxic.to_string()
            })
            .collect();
        insta::assert_snapshot!(text.join("\n"), @"
        latency 20ms downstream
        latency 20ms ± 5ms downstream
        latency 20ms ± 5ms (normal) downstream
        latency 5ms or more (Pareto, shape 2.5) downstream
        bandwidth 100 KB/s downstream
        slow_close 500ms downstream
        timeout without an end downstream
        timeout 1.5s downstream
        reset_peer after 0ns
        slicer 64 ± 8 bytes, 1ms apart downstream
        limit_data 4096 bytes downstream
        down
        ");
        let part = Toxic {
            effect: ToxicEffect::Down,
            stream: ToxicStream::Downstream,
            toxicity: 0.25,
            span: Some(ToxicSpan {
                at: ms(20_000),
                length: ms(10_000),
            }),
        };
        insta::assert_snapshot!(part, @"down, on 25 % of connections, at 20s for 10s");
    }
}
