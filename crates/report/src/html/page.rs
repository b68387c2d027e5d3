//! The report: verdict, the one picture, sections, charts, embedded records; and its form for mails.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::drawings::LeadPicture;
use super::{assets, charts, drawings, parts};
use crate::content::{self, Section};
use crate::view::ResultView;
use crate::{escape, export};

/// Largest embedded copy of the records, compressed, in characters. A larger result embeds none and
/// names the command that exports it.
const LARGEST_RECORDS: usize = 2_000_000;

const OVER_TIME: &str = "What happened over time";

pub fn render_html(view: &ResultView) -> String {
    let charts = charts::charts(view);
    let charts_json = serde_json::to_string(&charts)
        .expect("charts are vectors of numbers and text; numbers that are none become null");
    let sections = content::sections(view);
    let leads = open_sections(view);
    let lead = drawings::lead_picture(view);
    let mut body = page_header(view) + "<main>\n" + &verdict_section(view, false) + &lead.html;
    body.push_str("<p class=\"choice\"><button type=\"button\" id=\"unfold\" aria-pressed=\"false\" hidden>Open all sections</button></p>\n");
    for section in &sections {
        let percentiles = if section.id == "latency" && charts.has_percentiles() {
            figure("percentile", PERCENTILES)
        } else {
            String::new()
        };
        let is_open = leads.contains(&section.id);
        body.push_str(&section_html(section, view, &lead, (is_open, &percentiles)));
        if comes_before_time(section, &sections) {
            body.push_str(&over_time(view, &charts));
        }
    }
    body.push_str("</main>\n");
    body.push_str(&page_footer(view));
    let data = escape::json_in_script(&charts_json);
    body += &format!("<script type=\"application/json\" id=\"charts\">{data}</script>\n");
    body.push_str(&records(view));
    let (library, script) = (assets::UPLOT_JS, assets::REPORT_JS);
    body += &format!("<script>{library}</script>\n<script>{script}</script>\n");
    let style = format!("{}\n{}", assets::UPLOT_CSS, assets::REPORT_CSS);
    let [library, script, hash] = [library, script, style.as_str()].map(assets::policy_hash);
    let policy = format!("script-src {library} {script}; style-src {hash}");
    let version = &view.machine.loadline;
    parts::html_document(&view.title, version, (&policy, &style), &body)
}

/// The report for a mail: one document without scripts and records, every section open; only charts
/// that work without a script.
pub fn render_mail(view: &ResultView) -> String {
    let lead = drawings::lead_picture(view);
    let mut body = page_header(view) + "<main>\n" + &verdict_section(view, true) + &lead.html;
    for section in &content::sections(view) {
        body.push_str(&section_html(section, view, &lead, (true, "")));
    }
    body.push_str(&format!(
        "</main>\n<footer><p>Made by loadline {0} from the records of result {1}, without scripts, for a mail. With charts over time and all records: loadline report {1}</p></footer>\n",
        escape::escape_html(&view.machine.loadline),
        escape::escape_html(&view.id),
    ));
    parts::without_script(&view.title, &view.machine.loadline, &body)
}

/// Sections that are open at first: the grounds of the answer.
fn open_sections(view: &ResultView) -> Vec<&'static str> {
    let lead = content::lead_section(view).map(|section| section.id);
    let grows = content::soak_section(view).map(|section| section.id);
    ["slo"].into_iter().chain(lead).chain(grows).collect()
}

/// Whether the time charts follow this section: latency, or the sizes without a latency section.
fn comes_before_time(section: &Section, sections: &[Section]) -> bool {
    let has_latency = sections.iter().any(|s| s.id == "latency");
    section.id == if has_latency { "latency" } else { "sizes" }
}

fn page_header(view: &ResultView) -> String {
    let title = escape::escape_html(&view.title);
    format!("<header><h1>{title}</h1></header>\n")
}

fn verdict_section(view: &ResultView, is_open: bool) -> String {
    let headline = content::headline(view);
    let verdict = parts::VerdictBox {
        tone: headline.tone,
        badge: headline.badge,
        sentence: &headline.sentence,
        facts: &content::facts(view),
        details: &headline.details,
    };
    verdict.to_section(is_open)
}

fn section_html(
    section: &Section,
    view: &ResultView,
    lead: &LeadPicture,
    (is_open, chart): (bool, &str),
) -> String {
    let content = [
        drawings::drawings_before(section.id, view, lead),
        chart.to_owned(),
        parts::blocks(section),
        drawings::drawings_after(section.id, view),
    ];
    parts::folding(section.id, &section.title, is_open, &content.concat())
}

const PERCENTILES: &str = "Each step to the right is ten times rarer: on the left most requests, on the right the slowest. The red line is the SLO, its dot the percentile that it names. The table below has the values.";

const AROUND_OUTAGE: [(&str, &str); 3] = [
    (
        "errors",
        "Errors: requests without a good answer in each second",
    ),
    ("heap", "Heap: committed, and what collections left (Mi)"),
    ("threads", "Threads, and sockets"),
];

fn over_time(view: &ResultView, charts: &charts::Charts) -> String {
    let names: Vec<&str> = charts.course_words().map(|(name, _)| name).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<p class=\"choice\"><label for=\"trial\">Trial</label> <select id=\"trial\">",
    );
    for (i, name) in names.iter().enumerate() {
        let name = escape::escape_html(name);
        out += &format!("<option value=\"{i}\">{name}</option>");
    }
    out.push_str("</select></p>\n");
    let origin = view.latency_origin();
    let latency = format!("Latency of each second, {origin} (ms, log scale)");
    for (id, caption) in [
        ("latency-time", latency.as_str()),
        (
            "stopped",
            "Stopped: garbage collection, and throttled by the CPU quota (ms in each second; throttled time is a sum over CPUs)",
        ),
        ("cpu", "CPU used, against the limit"),
        ("memory", "Memory against the limit (Mi)"),
    ] {
        out.push_str(&figure(id, caption));
    }
    if charts.has_outages() {
        for (id, caption) in AROUND_OUTAGE {
            out.push_str(&figure(id, caption));
        }
    }
    out.push_str("<details><summary>The same in words</summary>\n<ul>\n");
    for (name, words) in charts.course_words() {
        let (name, words) = (escape::escape_html(name), escape::escape_html(words));
        out += &format!("<li>{name}: {words}.</li>\n");
    }
    out.push_str("</ul>\n</details>\n");
    parts::folding("time", OVER_TIME, false, &out)
}

/// A chart: the script draws a canvas and a legend into the box, and names the canvas by the
/// caption. The box must not have a role: within an image the legend's buttons would have no name.
fn figure(id: &str, caption: &str) -> String {
    format!(
        "<figure><figcaption id=\"{id}-caption\">{caption}</figcaption><div class=\"chart\" id=\"chart-{id}\"></div></figure>\n"
    )
}

fn records(view: &ResultView) -> String {
    let compressed = gzip(&export::render_json(view));
    if compressed.len() > LARGEST_RECORDS {
        return String::new();
    }
    format!("<script type=\"text/plain\" id=\"records\">{compressed}</script>\n")
}

fn gzip(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes());
    let written = written.and_then(|()| encoder.finish());
    let bytes = written.expect("a vector takes every byte");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn page_footer(view: &ResultView) -> String {
    format!(
        "<footer><p><button type=\"button\" id=\"download\" hidden>Download the records (JSON)</button></p>\n\
         <p>Made by loadline {} from the records of result {}. Charts: uPlot 1.6.32.</p>\n\
         <details><summary>Licence of uPlot</summary><pre tabindex=\"0\">{}</pre></details>\n\
         <noscript><p>The charts need JavaScript; all tables work without.</p></noscript></footer>\n",
        escape::escape_html(&view.machine.loadline),
        escape::escape_html(&view.id),
        escape::html_file(assets::UPLOT_LICENSE),
    )
}
