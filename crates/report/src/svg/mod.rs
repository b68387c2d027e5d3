//! Small charts as SVG text, one file each, for drawings beyond uPlot's.
//!
//! Own geometry only; [`frame`] owns the SVG and its escaping, [`scale`] the axes. The data come
//! from the sections of [`crate::content`], so that a chart and its table cannot disagree. Every
//! mark has a title with its values.

mod caches;
mod frame;
mod growth;
mod instances;
mod knee;
mod levels;
mod matrix;
mod memory;
mod pauses;
mod price;
mod releases;
mod scale;
mod scaling;
mod search_path;
mod start_cpu;
mod warm_up;

pub use caches::draw_caches;
pub use growth::draw_growth;
pub use instances::draw_instances;
pub use knee::draw_knee;
pub use levels::draw_levels;
pub use matrix::draw_matrix;
pub use memory::memory_bars;
pub use pauses::pause_axis;
pub use price::draw_price;
pub use releases::draw_releases;
pub use scaling::draw_scaling;
pub use search_path::search_path;
pub use start_cpu::start_cpu;
pub use warm_up::warm_up;
