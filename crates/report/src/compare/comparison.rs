//! What a comparison says, before it is text.

use super::figure::ComparedFigure;
use super::size::RecommendedSize;

#[derive(Debug, Clone, PartialEq)]
pub struct ResultComparison {
    pub names: [String; 2],
    pub sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, needs or costs more.
    pub is_worse: bool,
    /// Why nothing can be said: one of them measured nothing; `None` when something can.
    pub cannot_say: Option<String>,
    /// What else differs between the two, so that a change may come from there.
    pub differences: Vec<String>,
    pub sizes: [Option<RecommendedSize>; 2],
    /// Figures at the recommended sizes; empty unless both recommend.
    pub recommended: Vec<ComparedFigure>,
    pub shared: Vec<SharedConfiguration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SharedConfiguration {
    pub name: String,
    /// Trials that kept the SLO, of those that may be believed.
    pub passes: [(usize, usize); 2],
    /// The first kept the SLO here, the second did not, and that counts: between two searches only
    /// at what the second recommends and above, as each search probes its own border.
    pub is_lost: bool,
    pub figures: Vec<ComparedFigure>,
}
