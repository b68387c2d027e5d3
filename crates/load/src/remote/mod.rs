//! Load from processes on other machines: generators that wait, and the one client that drives them.
//!
//! Owns the way between the two. A generator ([`serve`]) waits at a TCP port for whoever knows its
//! secret; the client (`relay`) is the `load-part` of a trial. It measures how far the clock of each
//! generator is from its own, gives each its part of the plan with the instant on that clock at which
//! to begin, and merges what comes back exactly: counters add, histograms add bucket by bucket. All
//! latencies are taken by a generator on its own clock; only what stands on the application's timeline
//! is moved by the offset, whose error is told. A generator whose client is silent sends nothing more.
//!
//! ```text
//! client                                generator
//! hello  version, nonce           ->
//!                                 <-    hello  version, nonce, proof
//! proof                           ->
//!                                 <-    welcome | busy
//! clock  echo                     <->   clock  echo, now          (20 before, one a second, 20 after)
//! reach  targets                  <->   reached  why not
//! load   plan (part i of n)       ->
//!                                 <-    connected
//! begin  instant there            ->
//! stop                            ->
//!                                 <-    second ..., result | failed
//! ```
//!
//! Each message is a [`frame`]. A proof is the HMAC of both nonces under the secret, another for each
//! side, so nobody learns the secret and a stranger who got the address of a generator gets no plan.
//! What follows is neither encrypted nor signed: it goes the way that the load itself goes.

pub mod frame;
mod hello;
mod link;
mod merged;
mod messages;
mod offset;
mod relay;
mod server;

pub use messages::{
    FromGenerator, GeneratorMember, GeneratorMessage, Generators, PORT, RemoteLoadFailure,
    ToGenerator,
};
pub(crate) use relay::run as run_remote;
pub use server::serve;
