//! The HTTP load generator: a schedule independent of responses, connections, histograms.
//!
//! Owns how load is made and how its latency is taken. It never judges a result (that is
//! `loadline-analysis`), prints nothing, and sends only to the given addresses. Every time is
//! CLOCK_MONOTONIC in ns; every histogram holds ns, 3 significant digits, 1 ns to 1 h.
//!
//! Read first: [`run()`] (threads and merging), `shard` (the loop of one thread), [`part`] (the
//! process that trials start), [`remote`] (the same from other machines).

mod affinity;
mod clock;
mod connection;
mod csv;
mod error;
pub mod export;
pub mod har;
mod health;
pub mod histogram;
pub mod http2;
pub mod loopback;
pub mod max_rate;
mod outcome;
pub mod part;
pub mod parts;
mod plan;
pub mod profile;
pub mod remote;
pub mod reported;
mod request;
pub mod response;
mod run;
mod schedule;
mod service_call;
mod shard;
mod socket;
pub mod spec;
pub mod summary;
mod target;
pub mod template;
mod timed_stream;
mod times;
mod tls;
mod user;
pub mod warmup;
mod wire;

pub use clock::{clock_ns, process_cpu};
pub use connection::find_response_error;
pub use error::{LoadError, in_plain_words, split_refusal};
pub use health::{Health, MAX_LAG, MAX_MISSED};
pub use outcome::{ErrorKind, LoadSecond, LoadTotals, RequestTotals};
pub use plan::{
    Expectation, Http2Options, LoadModel, LoadPart, LoadPlan, Pacing, RequestSpec, ThinkTime,
    TlsSpec, Users, WeightedRequest,
};
pub use run::{LoadOutcome, run};
pub use schedule::{ArrivalPattern, RateSegment};
pub use service_call::call_service;
pub use spec::{LoadSpec, ProfileSource};
pub use target::{LoadTarget, instance_url};
pub use user::User;
