//! What a comparison says, before it is text.

use super::figure::ComparedFigure;
use super::size::RecommendedSize;

#[derive(Debug, Clone, PartialEq)]
pub struct ResultComparison {
    pub names: [String; 2],
    pub sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, needs or costs more.
    pub is_worse: bool,
    /// Why no comparison is possible: one result measured nothing; `None` if it is possible.
    pub cannot_say: Option<String>,
    pub differences: Vec<String>,
    pub sizes: [Option<RecommendedSize>; 2],
    pub recommended: Vec<ComparedFigure>,
    pub shared: Vec<SharedConfiguration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SharedConfiguration {
    pub name: String,
    pub passes: [(usize, usize); 2],
    /// The first kept the SLO here, the second did not, and that counts: between two searches only
    /// at what the second recommends and above, as each search probes its own border.
    pub is_lost: bool,
    pub figures: Vec<ComparedFigure>,
}
