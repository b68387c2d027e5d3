//! The pages of `loadline serve`: all results, a running result, a service over its releases.
//!
//! Own their HTML; the content comes from [`crate::content`] and [`crate::figures`], so that a page
//! and a report cannot disagree. Escape everything; allow only their own scripts, by hash
//! ([`LivePage::policy`]). The server owns addresses, sessions and the stream of events.

mod overview;
mod release;
mod running;

use crate::escape;
use crate::html::assets;

pub use overview::{ResultListing, listing_html, overview};
pub use release::{ServiceRelease, releases};
pub use running::{progress_html, running_page, unreadable_notice};

const LIVE_JS: &str = include_str!("../../assets/live.js");
const LIVE_CSS: &str = include_str!("../../assets/live.css");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePage {
    pub html: String,
    pub policy: String,
}

#[derive(Default)]
struct PageData<'a> {
    result: &'a str,
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
    live_document(title, &main, &PageData::default())
}

#[cfg(test)]
mod tests;
