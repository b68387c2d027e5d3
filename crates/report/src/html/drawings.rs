//! Which SVG hangs on which section, with its caption. A new one goes here.

use super::parts::drawing;
use crate::view::ResultView;
use crate::{content, svg};

pub(super) struct LeadPicture {
    pub(super) html: String,
    of: Option<&'static str>,
}

/// The first picture: the knee, the price curve, the comparison of levels, or else the drawing of
/// the section that answers; empty if none can be drawn.
pub(super) fn lead_picture(view: &ResultView) -> LeadPicture {
    let slowest = if content::runs::is_of_runs(view) {
        "run"
    } else {
        "start"
    };
    let html = drawing(
        svg::draw_knee(view),
        &format!(
            "Where it breaks: the slowest {slowest} of each size that was tried, up to twice the answer. Where several ran, a line reaches down to the fastest."
        ),
    ) + &drawing(
        svg::draw_price(view),
        "What a price buys, and what the next cheaper deployments break. A cross at the upper edge has its p99 in requests that failed.",
    ) + &drawing(
        svg::draw_levels(view),
        "How much each needs. The bar is the size to ship, its dashed line the smallest that kept the SLO in every confirmation.",
    );
    if !html.is_empty() {
        return LeadPicture { html, of: None };
    }
    let growth = content::soak_section(view).map(|section| section.id);
    let starts = view.is_of_starts().then_some("start");
    let sections = growth.into_iter().chain(["instances", "scaling"]);
    for id in sections.chain(starts) {
        let html = of_section(id, view);
        if !html.is_empty() {
            return LeadPicture { html, of: Some(id) };
        }
    }
    let matrix = drawing(
        svg::draw_matrix(view),
        "How it goes with what was varied: the middle trial of each configuration, and how far its trials lie apart.",
    );
    LeadPicture {
        html: matrix,
        of: None,
    }
}

pub(super) fn drawings_before(section: &str, view: &ResultView, lead: &LeadPicture) -> String {
    if lead.of == Some(section) {
        String::new()
    } else {
        of_section(section, view)
    }
}

fn of_section(section: &str, view: &ResultView) -> String {
    match section {
        "memory" => drawing(
            svg::memory_bars(view),
            "Each bar is a limit, filled as in its fullest second.",
        ),
        "growth" => drawing(
            svg::draw_growth(view),
            "What the application's processes take over the two cycles of the load. Lines that go on rising in the second cycle are lost memory.",
        ),
        "pauses" => drawing(
            svg::pause_axis(view),
            "The trial that paused most, and the seconds around its longest pause. Above: pauses over 50 ms, as high as they are long, and as a line the largest latency of each second. Below: when all threads stood for a collection or another safepoint, and when the CPU quota was used up.",
        ),
        "scaling" => drawing(
            svg::draw_scaling(view),
            "Each dot and the cross above it belong to one size; sizes with the same CPU and other memory stand side by side. Both axes are logarithmic.",
        ),
        "start" => {
            drawing(
                svg::draw_caches(view),
                "Shorter is better. A bar is the median of pairs that ran next to each other; the line at 100 % is the JVM's own choice.",
            ) + &drawing(
                svg::start_cpu(view),
                "Below about one CPU a start takes as long as its CPU time lasts under the limit. A diamond on its dots means that the model would have foretold them.",
            )
        }
        "warm-up" => drawing(
            svg::warm_up(view),
            "How the answers get faster while the JVM compiles the code that is used.",
        ),
        "instances" => drawing(
            svg::draw_instances(view),
            "Left, what all instances carried together, with the fitted law where there is one; right, what they took of memory.",
        ),
        _ => String::new(),
    }
}

pub(super) fn drawings_after(section: &str, view: &ResultView) -> String {
    match section {
        "sizes" => drawing(
            svg::search_path(view),
            "How the search found it: the memory limit of each trial in running order, every size that was tried on its own line.",
        ),
        _ => String::new(),
    }
}
