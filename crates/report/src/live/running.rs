//! A result that runs: its path so far, the trial of this moment, its log, and the way to end it.

use loadline_analysis::record::TrialVerdict;
use loadline_sizing::Bytes;

use super::{LivePage, PageData, ResultListing, live_document};
use crate::content::trials;
use crate::html::parts::drawing;
use crate::view::ResultView;
use crate::{escape, format, svg};

/// Charts of requests, the first ones.
const OF_REQUESTS: usize = 2;

const CHARTS: [(&str, &str); 4] = [
    (
        "p99",
        "p99 of each second, from the intended send time (ms)",
    ),
    ("rate", "Good responses a second"),
    (
        "memory",
        "Memory, page cache included, at the end of each second (Mi)",
    ),
    (
        "cpu",
        "CPUs used, and time throttled by the quota in each second (a sum over CPUs, in CPUs)",
    ),
];

pub fn running_page(listing: &ResultListing, view: &ResultView, secret: &str) -> LivePage {
    let mut main = String::from("<section id=\"now\">\n<h2>Now</h2>\n");
    main.push_str(
        "<p id=\"phase\" class=\"phase\">waiting for the next trial</p>\n<p id=\"left\"></p>\n\
         <p><button type=\"button\" id=\"stop\">Stop this run</button> <span id=\"stopped\" role=\"status\"></span></p>\n",
    );
    let charts = if view.sends_requests() {
        &CHARTS[..]
    } else {
        &CHARTS[OF_REQUESTS..]
    };
    for (id, caption) in charts {
        main.push_str(&format!(
            "<figure><figcaption id=\"{id}-caption\">{caption}</figcaption><div class=\"chart\" id=\"chart-{id}\"></div></figure>\n"
        ));
    }
    main.push_str(
        "<details open><summary>Last lines of the application</summary><pre id=\"log\" tabindex=\"0\"></pre></details>\n</section>\n",
    );
    main += &format!("<div id=\"progress\">\n{}</div>\n", progress_html(view));
    let result = &listing.id;
    let data = PageData { result, secret };
    live_document(&listing.title, &main, &data)
}

/// The progress, which the stream of events renews: the sentence, the path, the trials.
pub fn progress_html(view: &ResultView) -> String {
    let sentence = escape::escape_html(&so_far(view));
    let mut out = format!("<section>\n<h2>So far</h2>\n<p>{sentence}</p>\n");
    let path = svg::search_path(view);
    out += &drawing(path, "The memory limit of each trial.");
    let table = trials::trials_table(view);
    if !table.has_no_rows() {
        out.push_str(&table.to_html("Trials so far"));
    }
    out.push_str("</section>\n");
    out
}

fn so_far(view: &ResultView) -> String {
    if view.trials.is_empty() {
        return "No trial has ended yet.".to_owned();
    }
    let of = |verdict: fn(TrialVerdict) -> bool| {
        let counted = view.trials.iter().filter(move |t| verdict(t.verdict));
        counted.filter_map(|t| t.configuration.memory)
    };
    let kept = of(|v| v == TrialVerdict::Pass).min();
    let missed = of(|v| matches!(v, TrialVerdict::SloMiss | TrialVerdict::AppKo(_))).max();
    let trials = format::count_of(view.trials.len(), "trial");
    let looked = |what: &str, size: Option<Bytes>| {
        size.map_or_else(String::new, |size| format!(", {what} {size}"))
    };
    format!(
        "{trials} under {}{}{}.",
        view.slo.to_string().replace(',', " and "),
        looked("the smallest memory that kept it", kept),
        looked("the largest that did not", missed)
    )
}

pub fn unreadable_notice(why: &str) -> String {
    let why = escape::escape_html(why);
    format!("<section>\n<p>{why}</p>\n</section>\n")
}
