//! Load from processes on other machines: waiting generators, and the one client that drives them.
//!
//! Owns the protocol between the two. A generator ([`serve`]) waits at a TCP port for a client with
//! its secret; the client (`relay`) is the `load-part` of a trial. It measures the clock offset of
//! each generator, gives each its part of the plan with the start instant on that clock, and merges
//! the results exactly: counters add, histograms add bucket by bucket. Each generator takes all
//! latencies on its own clock; only points on the application's timeline are moved by the offset,
//! with its error reported. A generator with a silent client sends no further requests.
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
//! Each message is a [`frame`]. A proof is the HMAC of both nonces under the secret, a different
//! one for each side, so an eavesdropper cannot learn the secret and a stranger with the address of
//! a generator gets no plan. The messages after it are neither encrypted nor signed: they take the
//! same path as the load itself.

pub mod frame;
mod hello;
mod link;
mod merged;
mod messages;
mod offset;
mod relay;
mod server;

pub use messages::{
    FromGenerator, GeneratorMember, Generators, PORT, RemoteLoadFailure, ToGenerator,
};
pub(crate) use relay::run as run_remote;
pub use server::serve;
