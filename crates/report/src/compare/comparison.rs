//! What a comparison says, before it is text.

use super::figure::ComparedFigure;
use super::size::RecommendedSize;

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultComparison {
    /// Names of the two results: title and id.
    pub names: [String; 2],
    /// The change in a sentence.
    pub sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, needs or costs more.
    pub is_worse: bool,
    /// Why nothing can be said: one of them measured nothing; `None` when something can.
    pub cannot_say: Option<String>,
    /// What else differs between the two, so that a change may come from there.
    pub differences: Vec<String>,
    /// What they recommend, where they do.
    pub sizes: [Option<RecommendedSize>; 2],
    /// Figures at the recommended sizes; empty unless both recommend.
    pub recommended: Vec<ComparedFigure>,
    /// Every configuration that both ran.
    pub shared: Vec<SharedConfiguration>,
}

/// A configuration that both results ran.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedConfiguration {
    /// Its name.
    pub name: String,
    /// Trials that kept the SLO, of those that may be believed.
    pub passes: [(usize, usize); 2],
    /// The first kept the SLO here, the second did not, and that counts: between two searches only
    /// at what the second recommends and above, as each search probes its own border.
    pub is_lost: bool,
    /// Its figures.
    pub figures: Vec<ComparedFigure>,
}
