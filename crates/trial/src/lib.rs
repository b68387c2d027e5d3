//! One whole trial on one host and one clock: `loadline trial-part`.
//!
//! Owns everything between an order and the end of its event log: the containment of the
//! application, its start, the load, the sampling, its stop. The processes of a trial, and their
//! parents:
//!
//! ```text
//! loadline ── trial-part ── holder ── init (PID 1) ── application
//!    │            └──────── load generator, on separate CPUs
//!    └─ keeper-part ── holder ── init ── shared dependency
//! ```
//!
//! Judges nothing and knows no store. Read in this order: [`part`] (order in, events out), `trial`
//! (the phases), `instance` (one application of a trial), `container` (the interface), `own`
//! (loadline's own containers), `oci` (an engine's), [`pod`] (next to an application that a kubelet
//! or a remote engine, [`apart`], contains), `ending` (the stop). Facts and measurements behind the
//! design: ARCHITECTURE.md, "Containment".

pub mod apart;
pub mod application_pauses;
mod at_ready;
pub mod clock;
pub mod container;
mod copies;
mod counted;
mod cpus;
mod dependencies;
mod dependency;
mod disk;
mod ending;
pub mod entry;
mod gc;
pub mod gc_evidence;
mod generator;
mod group;
mod halt;
mod holder;
mod instance;
mod instances;
pub mod jvm_words;
pub mod keeper;
mod listener;
mod load_command;
mod metrics;
mod neighbour;
pub mod networks;
mod notes;
pub mod oci;
mod output;
mod own;
mod pagecache;
pub mod part;
mod parts;
pub mod pod;
mod preflight;
mod probe;
mod process_text;
pub mod program;
mod proxy;
mod recording;
mod redactor;
pub mod rootless;
pub mod run_output;
mod run_watch;
pub mod samples;
mod scratch;
mod sight;
mod site;
pub mod soaking;
mod spawner;
mod squeezing;
mod studying;
mod summary;
mod sweep;
mod trial;
mod watching;

pub use clock::monotonic_ns;
pub use generator::{generator_deadline, run_load_process};
pub use neighbour::run_neighbour;
#[cfg(target_os = "linux")]
pub use own::init;
pub use preflight::preflight_checks;
pub use program::is_script;
pub use proxy::run_proxy_process;
pub use scratch::remove_scratch;
pub use sight::blindness;
pub use site::{Site, SiteOptions};
pub use spawner::{kill_part, part_command, read_answers, spawn_command};
pub use sweep::{SiteSweep, client_id, is_dead_of_ours};
