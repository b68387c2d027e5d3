//! The pages of `loadline serve`: all results, one that runs, a service over its releases.
//!
//! Own their HTML; what stands in it comes from [`crate::content`] and [`crate::figures`], so that a
//! page and a report cannot disagree. Escape everything; allow themselves no script but theirs, by
//! its hash ([`LivePage::policy`]). Whoever serves them owns addresses, sessions and the stream of events.

mod overview;
mod release;
mod running;

use crate::escape;
use crate::html::assets;

pub use overview::{ResultListing, listing_html, overview};
pub use release::{ServiceRelease, releases};
pub use running::{progress_html, running_page, unreadable_notice};

/// Our script: follows the stream of events, draws what runs, asks for the end of a run.
const LIVE_JS: &str = include_str!("../../assets/live.js");
/// What these pages add to the report's style.
const LIVE_CSS: &str = include_str!("../../assets/live.css");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePage {
    pub html: String,
    /// Its content security policy, for the header of that name.
    pub policy: String,
}

/// The data of a page that its script reads; each is escaped here.
struct PageData<'a> {
    /// The result that it follows; empty where it follows all.
    result: &'a str,
    /// What a request that changes something has to bring along.
    secret: &'a str,
}

fn live_document(title: &str, main: &str, data: &PageData<'_>) -> LivePage {
    let style = format!("{}\n{}\n{LIVE_CSS}", assets::UPLOT_CSS, assets::REPORT_CSS);
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        assets::policy_hash(assets::UPLOT_JS),
        assets::policy_hash(LIVE_JS),
        assets::policy_hash(&style),
    );
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – loadline</title>\n<style>{style}</style>\n</head>\n\
         <body data-result=\"{}\" data-secret=\"{}\">\n\
         <a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
         <header><p class=\"home\"><a href=\"/\">loadline: all results</a></p><h1>{title}</h1>\n\
         <p id=\"connection\" role=\"status\"></p></header>\n\
         <main id=\"main\">\n{main}</main>\n\
         <noscript><p>Without JavaScript a page stands still; load it again for what is new.</p></noscript>\n\
         <script>{}</script>\n<script>{LIVE_JS}</script>\n</body>\n</html>\n",
        escape::escape_html(data.result),
        escape::escape_html(data.secret),
        assets::UPLOT_JS,
        title = escape::escape_html(title),
    );
    LivePage { html, policy }
}

pub fn message(title: &str, sentence: &str) -> LivePage {
    let main = format!("<p>{}</p>\n", escape::escape_html(sentence));
    let nothing = PageData {
        result: "",
        secret: "",
    };
    live_document(title, &main, &nothing)
}

#[cfg(test)]
mod tests;
