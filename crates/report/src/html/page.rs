//! The page: head with its policy, verdict, sections, charts, embedded records.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{assets, charts};
use crate::content::{self, Block, Section};
use crate::escape;
use crate::export;
use crate::svg;
use crate::table::Tone;
use crate::view::ResultView;

/// Largest embedded copy of the records, compressed, in characters. A larger result embeds none and
/// names the command that exports it.
const LARGEST_RECORDS: usize = 2_000_000;

/// Heading of the charts over time.
const OVER_TIME: &str = "What happened over time";

/// The whole report as one HTML document.
pub fn html(view: &ResultView) -> String {
    let charts = charts::charts(view);
    let charts_json = serde_json::to_string(&charts)
        .expect("charts are vectors of numbers and text; numbers that are none become null");
    let style = format!("{}\n{}", assets::UPLOT_CSS, assets::REPORT_CSS);
    let mut out = head(view, &style);
    out.push_str("<body>\n<a class=\"skip\" href=\"#verdict\">Skip to the verdict</a>\n");
    let sections = content::sections(view);
    out.push_str(&header(
        view,
        &sections,
        charts.course_names().next().is_some(),
    ));
    out.push_str("<main>\n");
    out.push_str(&verdict(view));
    for section in &sections {
        out.push_str(&section_html(section, view, &charts));
        if comes_before_time(section, &sections) {
            out.push_str(&over_time(&charts));
        }
    }
    out.push_str("</main>\n");
    out.push_str(&footer(view));
    out.push_str(&format!(
        "<script type=\"application/json\" id=\"charts\">{}</script>\n",
        escape::json_in_script(&charts_json)
    ));
    out.push_str(&records(view));
    out.push_str(&format!(
        "<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
        assets::UPLOT_JS,
        assets::REPORT_JS
    ));
    out
}

/// Whether the charts over time follow this section: latency, or the sizes where there is none.
fn comes_before_time(section: &Section, sections: &[Section]) -> bool {
    let has_latency = sections.iter().any(|s| s.id == "latency");
    section.id == if has_latency { "latency" } else { "sizes" }
}

fn head(view: &ResultView, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {} {}; style-src {}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"loadline {}\">\n\
         <title>{} – loadline</title>\n<style>{style}</style>\n</head>\n",
        assets::policy_hash(assets::UPLOT_JS),
        assets::policy_hash(assets::REPORT_JS),
        assets::policy_hash(style),
        escape::html(&view.machine.loadline),
        escape::html(&view.title),
    )
}

fn header(view: &ResultView, sections: &[Section], has_course: bool) -> String {
    let mut out = format!(
        "<header><h1>{}</h1>\n<nav aria-label=\"Sections\"><ul>",
        escape::html(&view.title)
    );
    for section in sections {
        let (id, title) = (section.id, escape::html(&section.title));
        out.push_str(&format!("<li><a href=\"#{id}\">{title}</a></li>"));
        if has_course && comes_before_time(section, sections) {
            out.push_str(&format!("<li><a href=\"#time\">{OVER_TIME}</a></li>"));
        }
    }
    out.push_str("</ul></nav></header>\n");
    out
}

fn verdict(view: &ResultView) -> String {
    let headline = content::headline(view);
    let class = match headline.tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        _ => "muted",
    };
    let mut out = format!(
        "<section id=\"verdict\" class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"badge\">{}</p><p class=\"sentence\">{}</p>\n",
        escape::html(headline.badge),
        escape::html(&headline.sentence)
    );
    for detail in &headline.details {
        out.push_str(&format!("<p>{}</p>\n", escape::html(detail)));
    }
    out.push_str("</section>\n");
    out
}

fn section_html(section: &Section, view: &ResultView, charts: &charts::Charts) -> String {
    let title = escape::html(&section.title);
    let mut out = format!("<section id=\"{}\">\n<h2>{title}</h2>\n", section.id);
    out.push_str(&figure_before(section.id, view, charts));
    if section.folds {
        out.push_str("<details><summary>Show</summary>\n");
    }
    for block in &section.blocks {
        match block {
            Block::Paragraph(words) => out.push_str(&format!("<p>{}</p>\n", escape::html(words))),
            Block::Table(table) => out.push_str(&table.html(&section.title)),
            Block::List(items) => {
                out.push_str("<ul>\n");
                for item in items {
                    out.push_str(&format!("<li>{}</li>\n", escape::html(item)));
                }
                out.push_str("</ul>\n");
            }
            Block::Verbatim(text) => {
                out.push_str(&format!(
                    "<pre tabindex=\"0\">{}</pre>\n",
                    escape::html_file(text)
                ));
            }
        }
    }
    if section.folds {
        out.push_str("</details>\n");
    }
    out.push_str(&figure_after(section.id, view));
    out.push_str("</section>\n");
    out
}

/// What is drawn above the text of a section. A new chart hangs on its section here or in
/// [`figure_after`].
fn figure_before(section: &str, view: &ResultView, charts: &charts::Charts) -> String {
    match section {
        "latency" if charts.has_percentiles() => figure(
            "percentile",
            "Each step to the right is ten times rarer: on the left most requests, on the right the slowest. The red line is the SLO, its dot the percentile that it names. The table below has the values.",
        ),
        "memory" => drawing(
            svg::memory_bars(view),
            "Each bar is a limit, filled as in its fullest second.",
        ),
        "growth" => drawing(
            svg::growth(view),
            "What the application's processes take over the two cycles of the load. Lines that go on rising in the second cycle are lost memory.",
        ),
        "pauses" => drawing(
            svg::pause_axis(view),
            "The trial that paused most, and the seconds around its longest pause. Above: pauses over 50 ms, as high as they are long, and as a line the largest latency of each second. Below: when all threads stood for a collection or another safepoint, and when the CPU quota was used up.",
        ),
        "money" => drawing(
            svg::price(view),
            "What a price buys, and what the next cheaper deployments break. A ring marks the recommended one; a cross at the upper edge has its p99 in requests that failed.",
        ),
        "scaling" => drawing(
            svg::scaling(view),
            "Each dot and the cross above it belong to one size; sizes with the same CPU and other memory stand side by side. Both axes are logarithmic.",
        ),
        "start" => {
            drawing(
                svg::caches(view),
                "Shorter is better. A bar is the median of pairs that ran next to each other; the line at 100 % is what the JVM does by itself.",
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
            svg::instances(view),
            "Left, what all instances carried together, with the fitted law where there is one; right, what they took of memory.",
        ),
        _ => String::new(),
    }
}

/// What is drawn below the text of a section.
fn figure_after(section: &str, view: &ResultView) -> String {
    match section {
        "sizes" => drawing(
            svg::search_path(view),
            "How the search found it: the memory limit of each trial, every size that was tried on its own line. A dot kept the SLO, a cross did not, a square says nothing; a ring marks the recommended size.",
        ),
        _ => String::new(),
    }
}

/// An SVG with its caption; nothing when there is nothing to draw.
fn drawing(svg: Option<String>, caption: &str) -> String {
    svg.map_or_else(String::new, |svg| {
        format!("<figure class=\"drawing\"><figcaption>{caption}</figcaption>\n{svg}</figure>\n")
    })
}

/// Charts that say something around an outage only.
const AROUND_OUTAGE: [(&str, &str); 3] = [
    (
        "errors",
        "Errors: requests without a good answer in each second",
    ),
    ("heap", "Heap: committed, and what collections left (Mi)"),
    ("threads", "Threads, and sockets"),
];

/// The charts of one trial over time, with the choice of the trial.
fn over_time(charts: &charts::Charts) -> String {
    let names: Vec<&str> = charts.course_names().collect();
    if names.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section id=\"time\">\n<h2>");
    out.push_str(OVER_TIME);
    out.push_str(
        "</h2>\n<p class=\"choice\"><label for=\"trial\">Trial</label> <select id=\"trial\">",
    );
    for (i, name) in names.iter().enumerate() {
        out.push_str(&format!(
            "<option value=\"{i}\">{}</option>",
            escape::html(name)
        ));
    }
    out.push_str("</select></p>\n");
    for (id, caption) in [
        (
            "latency-time",
            "Latency of each second, from the intended send time (ms, log scale)",
        ),
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
        out.push_str(&format!(
            "<li>{}: {}.</li>\n",
            escape::html(name),
            escape::html(words)
        ));
    }
    out.push_str("</ul>\n</details>\n</section>\n");
    out
}

/// A chart: the script draws a canvas and a legend into the box, and names the canvas by the caption.
/// The box has no role of its own: within an image the legend's buttons would have no name.
fn figure(id: &str, caption: &str) -> String {
    format!(
        "<figure><figcaption id=\"{id}-caption\">{caption}</figcaption><div class=\"chart\" id=\"chart-{id}\"></div></figure>\n"
    )
}

/// The records, compressed; the page's script offers them for download.
fn records(view: &ResultView) -> String {
    let compressed = gzip(&export::json(view));
    if compressed.len() > LARGEST_RECORDS {
        return String::new();
    }
    format!("<script type=\"text/plain\" id=\"records\">{compressed}</script>\n")
}

/// gzip, then base64.
fn gzip(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes());
    let bytes = written
        .and_then(|()| encoder.finish())
        .expect("a vector takes every byte");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn footer(view: &ResultView) -> String {
    format!(
        "<footer><p><button type=\"button\" id=\"download\" hidden>Download the records (JSON)</button></p>\n\
         <p>Made by loadline {} from the records of result {}. Charts: uPlot 1.6.32.</p>\n\
         <details><summary>Licence of uPlot</summary><pre>{}</pre></details>\n\
         <noscript><p>The charts need JavaScript; all tables work without.</p></noscript></footer>\n",
        escape::html(&view.machine.loadline),
        escape::html(&view.id),
        escape::html_file(assets::UPLOT_LICENSE),
    )
}
