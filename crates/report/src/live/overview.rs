//! All results, newest first; what runs stands above them.

use super::{LivePage, PageData, live_document};
use crate::{escape, format};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultListing {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub status: String,
    pub is_running: bool,
    /// When it was begun, milliseconds since 1970-01-01 UTC.
    pub begun_unix_ms: u64,
    pub trials: u64,
    pub answer: String,
}

pub fn overview(listings: &[ResultListing]) -> LivePage {
    let main = format!("<div id=\"list\">\n{}</div>\n", listing_html(listings));
    live_document("Results", &main, &PageData::default())
}

pub fn listing_html(listings: &[ResultListing]) -> String {
    if listings.is_empty() {
        return "<p>There is no result yet. <code>loadline size</code> makes one; it shows here while it runs.</p>\n".to_owned();
    }
    let (running, ended): (Vec<_>, Vec<_>) = listings.iter().partition(|l| l.is_running);
    let mut out = String::new();
    if !running.is_empty() {
        out.push_str(&listing_table("Running now", &running));
    }
    if !ended.is_empty() {
        out.push_str(&listing_table("Ended", &ended));
    }
    out
}

fn listing_table(heading: &str, listings: &[&ResultListing]) -> String {
    let mut out = format!(
        "<section>\n<h2>{heading}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\"><table><caption class=\"unseen\">{heading}</caption>\
         <thead><tr><th scope=\"col\">Result</th><th scope=\"col\">Begun (UTC)</th><th scope=\"col\">Command</th><th scope=\"col\">Service, over time</th>\
         <th scope=\"col\">Status</th><th scope=\"col\" class=\"num\">Trials</th><th scope=\"col\">Answer</th></tr></thead><tbody>\n"
    );
    for listing in listings {
        out.push_str(&listing_row(listing));
    }
    out.push_str("</tbody></table></div>\n</section>\n");
    out
}

fn listing_row(listing: &ResultListing) -> String {
    let id = escape::escape_html(&listing.id);
    let short = escape::escape_html(format::short_id(&listing.id));
    let page = if listing.is_running { "" } else { "/report" };
    format!(
        "<tr><th scope=\"row\"><a href=\"/results/{id}{page}\">{short}<span class=\"unseen\"> {title}</span></a></th>\
         <td>{}</td><td>{}</td><td><a href=\"/results/{id}/trend\">{title}<span class=\"unseen\"> over time</span></a></td><td>{}</td><td class=\"num\">{}</td><td class=\"wraps\">{}</td></tr>\n",
        format::date(listing.begun_unix_ms),
        escape::escape_html(&listing.kind),
        escape::escape_html(&listing.status),
        listing.trials,
        escape::escape_html(&listing.answer),
        title = escape::escape_html(&listing.title),
    )
}
