//! What the numbers mean: verdicts, intervals, search rules, recommendations.
//!
//! Pure: no I/O, no clock, randomness only from a seed that is passed in. Owns the record of a
//! trial ([`record`]), so that every result can be judged again from it, on another machine.
//! Read [`record`] first, then [`slo`], [`verdict`] and [`search`].

pub mod advice;
pub mod app_ko;
pub mod attained;
pub mod attribution;
pub mod baseline;
pub mod behaviour;
pub mod budget;
pub mod calendar;
pub mod coverage;
pub mod dependency;
pub mod deployment;
pub mod early;
pub mod effect;
pub mod estimate;
pub mod explain;
pub mod foreign_text;
pub mod growth;
pub mod heap;
pub mod instances;
pub mod interval;
pub mod latency;
mod least_squares;
pub mod lint;
pub mod margin;
pub mod metric_text;
pub mod noise;
pub mod obstacle;
pub mod offer;
pub mod outage;
pub mod pauses;
pub mod pooled;
pub mod price;
pub mod proof;
pub mod proxy;
pub mod random;
pub mod recommend;
pub mod record;
pub mod reported;
pub mod search;
pub mod shift;
pub mod sli;
pub mod slo;
pub mod span;
pub mod startup;
pub mod steady;
pub mod text;
pub mod throttle;
pub mod timeline;
pub mod together;
pub mod tuning;
pub mod usl;
pub mod verdict;
pub mod warming;
pub mod wire;

#[cfg(test)]
mod fixture;
