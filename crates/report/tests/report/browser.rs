//! The report in a real browser, headless Chromium driven over its debugging pipe.
//!
//! Nothing is fetched: pages come from file://. SKIP by name without Chromium.
//! `LOADLINE_SCREENSHOTS=DIR` keeps pictures to look at.

#[path = "../../../../tests/browser/axe.rs"]
pub mod axe;
#[path = "../../../../tests/browser/devtools.rs"]
pub mod devtools;

use std::path::PathBuf;

use devtools::Page;
use serde_json::json;

use crate::{drawings, fixture, hostile, pauses, startup};

/// Writes a page and opens it.
pub fn open(name: &str, html: &str, width: u32) -> Option<Page> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("report.html");
    std::fs::write(&path, html).expect("writable");
    let page = Page::open(&format!("file://{}", path.display()), width);
    if page.is_none() {
        println!("SKIP browser::{name}: no chromium in PATH (Debian package chromium)");
    }
    page
}

pub fn keep(page: &mut Page, name: &str) {
    if let Some(directory) = std::env::var_os("LOADLINE_SCREENSHOTS") {
        let path = PathBuf::from(directory).join(format!("{name}.png"));
        std::fs::write(path, page.screenshot()).expect("writable");
    }
}

/// Canvases that show more than two colours, and all canvases.
fn drawn(page: &mut Page) -> (u64, u64) {
    let script = "JSON.stringify(Array.from(document.querySelectorAll('canvas')).map(c => {
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 24 | d[i+1] << 16 | d[i+2] << 8 | d[i+3]);
        return seen.size; }))";
    let text = page.evaluate(script);
    let colours: Vec<u64> = serde_json::from_str(text.as_str().expect("text")).expect("numbers");
    let drawn = colours.iter().filter(|n| **n > 2).count() as u64;
    (drawn, colours.len() as u64)
}

#[test]
fn every_chart_is_drawn_and_nothing_is_said_on_the_console() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("every_chart_is_drawn", &html, 1200) else {
        return;
    };
    assert_eq!(drawn(&mut page), (5, 5));
    keep(&mut page, "search-first-screen");
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn dark_mode_changes_page_and_charts_while_open() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("dark_mode", &html, 1200) else {
        return;
    };
    let back = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(page.evaluate(back), "rgb(255, 255, 255)");
    let line = "document.querySelector('.u-legend .u-marker:not([style*=\"border: 0\"])') && \
        getComputedStyle(document.querySelectorAll('.u-legend .u-marker')[1]).borderTopColor";
    let light = page.evaluate(line);
    page.call(
        "Emulation.setEmulatedMedia",
        &json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
    );
    assert_eq!(page.evaluate(back), "rgb(20, 24, 28)");
    page.wait_until(&format!("({line}) !== {light}"));
    assert_eq!(drawn(&mut page), (5, 5));
    keep(&mut page, "search-first-screen-dark");
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn hovering_shows_values_and_the_legend_switches_lines_by_keyboard() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("hovering", &html, 1200) else {
        return;
    };
    page.evaluate("location.hash = '#latency'");
    page.wait_until("document.querySelector('#latency > details').open");
    page.evaluate("document.getElementById('chart-percentile').scrollIntoView({block: 'center', behavior: 'instant'})");
    let text = page.evaluate(
        "(() => { const b = document.querySelector('#chart-percentile .u-over').getBoundingClientRect();
           return JSON.stringify([b.left + b.width * 0.4, b.top + b.height / 2]); })()",
    );
    let at: Vec<f64> = serde_json::from_str(text.as_str().expect("text")).expect("numbers");
    page.call(
        "Input.dispatchMouseEvent",
        &json!({"type": "mouseMoved", "x": at[0], "y": at[1]}),
    );
    let value = "document.querySelectorAll('#chart-percentile .u-value')[1].textContent";
    page.wait_until(&format!("{value}.endsWith('ms')"));
    page.evaluate("document.querySelectorAll('#chart-percentile .u-legend th')[1].focus()");
    for kind in ["keyDown", "keyUp"] {
        page.call(
            "Input.dispatchKeyEvent",
            &json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}),
        );
    }
    let pressed = "document.querySelectorAll('#chart-percentile .u-legend th')[1].getAttribute('aria-pressed')";
    assert_eq!(page.evaluate(pressed), "false");
    // The drawing is an image with a name; its box is none, or the buttons in it would have no name.
    let image = "(() => { const c = document.querySelector('#chart-percentile canvas');
        return c.getAttribute('role') + ' ' + !!document.getElementById(c.getAttribute('aria-labelledby')); })()";
    assert_eq!(page.evaluate(image), "img true");
    let outer = "document.querySelectorAll('[role=img] [role=button]').length";
    assert_eq!(page.evaluate(outer), 0);
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn choosing_another_trial_redraws_and_sorting_a_table_orders_it() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("choosing", &html, 1200) else {
        return;
    };
    let canvas = "document.querySelector('#chart-memory canvas').toDataURL()";
    let before = page.evaluate(canvas);
    page.evaluate("(() => { const s = document.getElementById('trial'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })()");
    assert_ne!(page.evaluate(canvas), before);
    page.evaluate("document.querySelectorAll('#trials thead button')[2].click()");
    let cells = page.evaluate("JSON.stringify(Array.from(document.querySelectorAll('#trials tbody tr')).map(r => r.cells[2].textContent))");
    let cells: Vec<String> = serde_json::from_str(cells.as_str().expect("text")).expect("texts");
    assert_eq!(cells.first().map(String::as_str), Some("128Mi"));
    assert_eq!(cells.len(), 22);
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn the_embedded_records_are_what_json_exports() {
    let view = fixture::search();
    let Some(mut page) = open(
        "embedded_records",
        &loadline_report::render_html(&view),
        1200,
    ) else {
        return;
    };
    let text = page.evaluate(
        "(async () => { const b = Uint8Array.from(atob(document.getElementById('records').textContent), c => c.charCodeAt(0));
           return await new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream('gzip'))).text(); })()",
    );
    assert_eq!(
        text.as_str(),
        Some(loadline_report::render_json(&view).as_str())
    );
    assert_eq!(
        page.evaluate("document.getElementById('download').hidden"),
        false
    );
}

#[test]
fn it_prints_to_paper() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("it_prints", &html, 1200) else {
        return;
    };
    let pdf = page.pdf();
    assert!(pdf.starts_with(b"%PDF-"));
    assert!(pdf.len() > 40_000, "{} bytes", pdf.len());
    if let Some(directory) = std::env::var_os("LOADLINE_SCREENSHOTS") {
        std::fs::write(PathBuf::from(directory).join("search.pdf"), &pdf).expect("writable");
    }
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn a_narrow_window_needs_no_sideways_scrolling() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("narrow", &html, 390) else {
        return;
    };
    keep(&mut page, "search-first-screen-narrow");
    let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(page.evaluate(overflow), 0);
}

#[test]
fn tables_of_the_first_screens_fit_into_500_pixels() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("500", &html, 500) else {
        return;
    };
    keep(&mut page, "search-500");
    let beyond = "Math.max(...Array.from(document.querySelectorAll('#slo .scroll, #sizes .scroll')).map(e => e.scrollWidth - e.clientWidth))";
    assert_eq!(page.evaluate(beyond), 0);
}

#[test]
fn a_matrix_shows_its_grid() {
    let html = loadline_report::render_html(&fixture::matrix());
    let Some(mut page) = open("matrix", &html, 1200) else {
        return;
    };
    keep(&mut page, "matrix-light");
    assert_eq!(
        page.evaluate("document.querySelectorAll('#sizes td').length"),
        12
    );
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn drawings_fit_their_page_and_have_no_text_beyond_their_edge() {
    for (name, view) in [
        ("price", drawings::cheapest()),
        ("rates", drawings::rates()),
        ("caches", startup::caches()),
        ("limits", startup::limits()),
        ("pauses", pauses::view()),
    ] {
        let html = loadline_report::render_html(&view);
        for width in [1200, 390] {
            let Some(mut page) = open("drawings", &html, width) else {
                return;
            };
            keep(&mut page, &format!("{name}-{width}"));
            let overflow =
                "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(page.evaluate(overflow), 0, "{name} at {width}");
            let beyond = page.evaluate(
                "JSON.stringify(Array.from(document.querySelectorAll('figure.drawing > svg')).flatMap(svg => {
                    const edge = svg.viewBox.baseVal;
                    return Array.from(svg.querySelectorAll('text')).filter(text => {
                        const box = text.getBBox();
                        return box.x < 0 || box.y < 0 || box.x + box.width > edge.width || box.y + box.height > edge.height;
                    }).map(text => svg.getAttribute('class') + ': ' + text.textContent);
                }))",
            );
            assert_eq!(beyond, "[]", "{name} at {width}");
            assert_eq!(page.messages(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_thousand_trials_open() {
    let mut view = fixture::search();
    let some = view.trials.clone();
    view.trials = (0..1000)
        .map(|i| {
            let mut trial = some[i % some.len()].clone();
            trial.id = format!("01936f2a-0000-7000-8000-{i:012x}");
            trial
        })
        .collect();
    let html = loadline_report::render_html(&view);
    assert!(html.len() < 5_000_000, "{}", html.len());
    let Some(mut page) = open("a_thousand_trials", &html, 1200) else {
        return;
    };
    assert_eq!(drawn(&mut page), (5, 5));
    let rows = "document.querySelectorAll('#trials tbody tr').length";
    assert_eq!(page.evaluate(rows), 1000);
    let ready = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd");
    println!(
        "a page of 1000 trials, {} bytes, was loaded after {ready} ms",
        html.len()
    );
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn hostile_records_stay_text() {
    let html = loadline_report::render_html(&hostile::view());
    let Some(mut page) = open("hostile", &html, 1200) else {
        return;
    };
    keep(&mut page, "hostile");
    assert_eq!(
        page.evaluate("document.querySelectorAll('img, iframe, object, base, link, form').length"),
        0
    );
    assert_eq!(
        page.evaluate("document.querySelectorAll('script').length"),
        4
    );
    assert_eq!(page.evaluate("typeof window.hacked"), "undefined");
    let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(page.evaluate(overflow), 0);
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn an_empty_result_opens() {
    let mut view = fixture::matrix();
    view.trials.clear();
    let Some(mut page) = open("empty", &loadline_report::render_html(&view), 1200) else {
        return;
    };
    assert_eq!(drawn(&mut page), (0, 0));
    assert_eq!(page.messages(), Vec::<String>::new());
}
