//! One whole trial on one host and one clock: `loadline trial-part`.
//!
//! Owns what happens between an order and the end of its event log: the containment of the
//! application, its start, the load, the sampling, its stop. What a trial's processes are and who
//! starts whom:
//!
//! ```text
//! loadline ── trial-part ── holder ── init (PID 1) ── application
//!    │            └──────── load generator, on CPUs of its own
//!    └─ keeper-part ── holder ── init ── dependency that trials share
//! ```
//!
//! Judges nothing and knows no store. Read in this order: [`part`] (order in, events out), `trial`
//! (the phases), `instance` (one application of a trial), `container` (what holds it), `own` (how
//! loadline holds it itself), `oci` (how an engine does), [`pod`] (what runs beside
//! an application that somebody else holds: a kubelet, or [`apart`] an engine out of sight), `ending` (the stop). Facts and measurements behind the design:
//! ARCHITECTURE.md, "Containment".

pub mod apart;
pub mod application_pauses;
mod at_ready;
pub mod clock;
pub mod container;
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
mod program;
mod proxy;
mod recording;
mod redactor;
pub mod rootless;
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
pub use output::plain_text;
pub use own::init;
pub use preflight::preflight_checks;
pub use program::is_script;
pub use proxy::run_proxy_process;
pub use scratch::remove_scratch;
pub use sight::blindness;
pub use site::{Site, SiteOptions};
pub use spawner::spawn_command;
pub use sweep::{SiteSweep, client_id, is_dead_of_ours};
