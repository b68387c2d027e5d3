//! Small charts as SVG text, one file each: what uPlot does not draw.
//!
//! Own geometry only. No style attributes (the page's security policy forbids them): colours come
//! from classes of `assets/report.css`, shapes or patterns differ as well, every mark has a title.

mod memory;
mod search_path;

pub use memory::memory_bars;
pub use search_path::search_path;
