//! Two results side by side: what changed from the first to the second, with intervals.
//!
//! Owns which trials are compared with which: those of the two recommended sizes, and those of each
//! configuration that both results ran. A change counts only when its interval says so. Never judges
//! a trial anew; verdicts are those of the records.

mod figure;
mod write;

use loadline_analysis::record::Verdict;
use loadline_sizing::Bytes;

use crate::content::groups::{self, Group, Names};
use crate::content::slo_words;
use crate::format;
use crate::text;
use crate::view::ResultView;

pub use figure::{Change, Figure};
pub use write::{comparison_json, comparison_markdown, comparison_terminal};

/// Two independent searches of one service agree within this share (SPECIFICATION.md): a smaller
/// difference between two recommended sizes says nothing.
const SAME_SIZE: f64 = 0.08;

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Names of the two results: title and id.
    pub names: [String; 2],
    /// The change in a sentence.
    pub sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, or needs more.
    pub is_worse: bool,
    /// What else differs between the two, so that a change may come from there.
    pub differences: Vec<String>,
    /// The recommended sizes, where there are any.
    pub sizes: [Option<Bytes>; 2],
    /// Figures at the recommended sizes; empty unless both recommend.
    pub recommended: Vec<Figure>,
    /// Every configuration that both ran.
    pub shared: Vec<Shared>,
}

/// A configuration that both results ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// Its name.
    pub name: String,
    /// Trials that kept the SLO, of those that may be believed.
    pub passes: [(usize, usize); 2],
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// Compares `b` with `a`.
pub fn compare(a: &ResultView, b: &ResultView) -> Comparison {
    let views = [a, b];
    let recommendations = views.map(|v| v.recommendation.as_ref());
    let sizes = recommendations.map(|r| r.map(|r| r.memory));
    let shared = shared(a, b);
    let recommended = match recommendations {
        [Some(one), Some(two)] => figure::figures(
            a,
            groups::group_of(a, &one.configuration).as_ref(),
            groups::group_of(b, &two.configuration).as_ref(),
        ),
        _ => Vec::new(),
    };
    let lost: Vec<&Shared> = shared.iter().filter(|s| s.is_lost()).collect();
    let (sentence, is_larger) = size_sentence(views, sizes);
    let sentence = match (sentence, lost.as_slice()) {
        (Some(sentence), []) => sentence,
        (None, []) => matrix_sentence(&shared),
        (sentence, lost) => {
            let names: Vec<&str> = lost.iter().map(|s| s.name.as_str()).collect();
            let lost = format!("The SLO is no longer kept at {}.", names.join(", "));
            format!("{} {lost}", sentence.unwrap_or_default())
                .trim()
                .to_owned()
        }
    };
    Comparison {
        names: views.map(|v| text::one_line(&format!("{} {}", v.title, short(&v.id)))),
        sentence,
        is_worse: is_larger || !lost.is_empty(),
        differences: differences(a, b),
        sizes,
        recommended,
        shared,
    }
}

/// The first characters of an id: enough to tell two results apart.
fn short(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

impl Shared {
    /// Kept before, not kept now.
    fn is_lost(&self) -> bool {
        let [before, after] = self.passes.map(|(kept, of)| of > 0 && kept == of);
        before && !after && self.passes[1].1 > 0
    }
}

/// The change of the recommended size, and whether it is for the worse.
fn size_sentence(views: [&ResultView; 2], sizes: [Option<Bytes>; 2]) -> (Option<String>, bool) {
    let [before, after] = match sizes {
        [Some(before), Some(after)] => [before, after],
        [Some(before), None] => {
            let ran = !views[1].trials.is_empty();
            let sentence = format!("The first needs {before}; the second has no answer.");
            return (Some(sentence), ran);
        }
        [None, Some(after)] => {
            let sentence = format!("The second needs {after}; the first has no answer.");
            return (Some(sentence), false);
        }
        [None, None] => return (None, false),
    };
    let ratio = after.as_bytes() as f64 / before.as_bytes().max(1) as f64;
    let percent = format::percent((ratio - 1.0).abs());
    let sentence = match ratio {
        r if r > 1.0 + SAME_SIZE => {
            format!("It needs more: {after} instead of {before}, {percent} more memory.")
        }
        r if r < 1.0 / (1.0 + SAME_SIZE) => {
            format!("It needs less: {after} instead of {before}, {percent} less memory.")
        }
        _ => format!(
            "No change that counts: {after} and {before}; two searches of one service differ by up to {}.",
            format::percent(SAME_SIZE)
        ),
    };
    (Some(sentence), ratio > 1.0 + SAME_SIZE)
}

fn matrix_sentence(shared: &[Shared]) -> String {
    match shared.len() {
        0 => "The two results have no configuration in common.".to_owned(),
        n => format!(
            "{} in both results; none of them lost the SLO.",
            format::count(n, "configuration")
        ),
    }
}

fn shared(a: &ResultView, b: &ResultView) -> Vec<Shared> {
    let others = groups::groups(b);
    let names = Names::of(a);
    let pair = |one: Group<'_>| {
        let two = others
            .iter()
            .find(|g| groups::is_same(g.configuration, one.configuration))?;
        Some(Shared {
            name: text::label(&names.name(one.configuration)),
            passes: [one.passes(), two.passes()],
            figures: figure::figures(a, Some(&one), Some(two)),
        })
    };
    groups::groups(a).into_iter().filter_map(pair).collect()
}

/// What was not the same.
fn differences(a: &ResultView, b: &ResultView) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, one: String, two: String| {
        if one != two {
            let line = format!("The {what} differs: {one}; {two}.");
            found.push(text::one_line(&line));
        }
    };
    differ("SLO", slo_words(a), slo_words(b));
    differ("load", a.load.clone(), b.load.clone());
    let machine = |v: &ResultView| {
        let m = &v.machine;
        format!("{} CPUs of {}, {}", m.cpus, m.cpu_model, m.kernel)
    };
    differ("machine", machine(a), machine(b));
    differ("JDK", a.machine.jdks.join(", "), b.machine.jdks.join(", "));
    differ(
        "version of loadline",
        a.machine.loadline.clone(),
        b.machine.loadline.clone(),
    );
    for (which, view) in [("first", a), ("second", b)] {
        if let Some(why) = &view.incomplete {
            found.push(text::one_line(&format!(
                "The {which} is not complete: {why}."
            )));
        }
        let left_out = view
            .trials
            .iter()
            .filter(|t| matches!(t.verdict, Verdict::Invalid(_) | Verdict::Interrupted))
            .count();
        if left_out > 0 {
            found.push(format!(
                "{left_out} of {} of the {which} were not valid and are left out.",
                format::count(view.trials.len(), "trial")
            ));
        }
    }
    found
}
