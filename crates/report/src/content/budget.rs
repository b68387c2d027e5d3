//! What fills the limit of an answer: every part, what it may still grow by, and what caps it.
//!
//! Owns the table and its one-line form. The numbers are the recommendation's budget in whole Mi, rounded
//! so that they add up to its sum.

use loadline_analysis::budget::{Budget, BudgetLine};
use loadline_analysis::coverage::COVERAGE;
use loadline_analysis::recommend::Recommendation;
use loadline_sizing::Bytes;

use super::section::Section;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;

/// `Budget: heap 96Mi, metaspace 60Mi + 3, ... = 262Mi of 272Mi.`
pub(crate) fn describe_budget(recommendation: &Recommendation) -> Option<String> {
    let budget = recommendation.budget.as_ref()?;
    let shares = WholeShares::of_budget(budget);
    let parts = budget.lines().iter().zip(&shares.parts);
    let parts = parts
        .filter(|(_, share)| share.total() > 0)
        .map(|(line, share)| {
            let growth = match share.growth {
                0 => String::new(),
                more => format!(" + {more}"),
            };
            format!("{} {}Mi{growth}", line.part, share.measured)
        });
    let parts: Vec<String> = parts.collect();
    Some(format!(
        "Budget: {} = {}Mi of {}.",
        parts.join(", "),
        shares.total(),
        budget.limit()
    ))
}

/// The budget, and how services fared with such budgets.
pub(crate) fn describe_with_coverage(recommendation: &Recommendation) -> Option<String> {
    let budget = describe_budget(recommendation)?;
    Some(format!("{budget} {}", COVERAGE.sentence()))
}

pub fn section(view: &ResultView) -> Option<Section> {
    let budget = view.recommendation.as_ref()?.budget.as_ref()?;
    let shares = WholeShares::of_budget(budget);
    let mut table = Table::new()
        .left("Part")
        .right("Measured | Growth")
        .wrapping("Why it may grow")
        .left("Capped by");
    for (line, share) in budget.lines().iter().zip(&shares.parts) {
        table.add_row(row(line, share));
    }
    let mut sum = |name: &str, size: String| {
        let empty = || TableCell::from("");
        table.add_row([name.into(), size.into(), empty(), empty(), empty()]);
    };
    sum("sum, growth included", format!("{}Mi", shares.total()));
    sum("limit", budget.limit().to_string());
    let left_over = budget.limit().saturating_sub(budget.total_need());
    sum("left over", left_over.round_down(MIB).to_string());
    let title = format!("What fills the {}?", budget.limit());
    let words = "Measured in a start that was aged with many requests. The heap is as large as it may become, the growth of the other parts is what they are still expected to take.";
    let section = Section::new("budget", title).with_paragraph(words);
    Some(section.with_table(table))
}

fn row(line: &BudgetLine, share: &WholeShare) -> [TableCell; 5] {
    let growth = match share.growth {
        0 => String::new(),
        more => format!("+ {more}Mi"),
    };
    [
        line.part.to_string().into(),
        format!("{}Mi", share.measured).into(),
        growth.into(),
        line.reason.clone().into(),
        TableCell::new(line.cap.clone().unwrap_or_default(), Tone::Code),
    ]
}

const MIB: Bytes = Bytes::from_mib(1);

struct WholeShare {
    measured: u64,
    growth: u64,
}

impl WholeShare {
    fn total(&self) -> u64 {
        self.measured + self.growth
    }
}

/// The lines of a budget in whole MiB, which add up to the sum rounded up: the lines with the
/// largest remainders are rounded up, the others down.
struct WholeShares {
    parts: Vec<WholeShare>,
}

impl WholeShares {
    fn of_budget(budget: &Budget) -> Self {
        let each = MIB.as_bytes();
        let exact = budget.lines().iter();
        let exact: Vec<u64> = exact
            .flat_map(|line| [line.measured.as_bytes(), line.growth.as_bytes()])
            .collect();
        let mut whole: Vec<u64> = exact.iter().map(|bytes| bytes / each).collect();
        let wanted = budget.total_need().as_bytes().div_ceil(each);
        let missing = wanted.saturating_sub(whole.iter().sum());
        let mut order: Vec<usize> = (0..exact.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(exact[*i] % each));
        for i in order.into_iter().take(missing as usize) {
            whole[i] += 1;
        }
        let pairs = whole.chunks_exact(2);
        let parts = pairs.map(|pair| WholeShare {
            measured: pair[0],
            growth: pair[1],
        });
        Self {
            parts: parts.collect(),
        }
    }

    fn total(&self) -> u64 {
        self.parts.iter().map(WholeShare::total).sum()
    }
}
