//! Who cannot see, hold a mouse or has little room reads every page: axe-core and the keyboard in a
//! real browser, light, dark, narrow and at 400 % zoom.

use serde_json::json;

use crate::browser::{axe, devtools::Page, keep, open};
use crate::{drawings, fixture};

/// Windows in which a page is looked at: what it is called, width, pixels a CSS pixel, colours.
/// A window of 1280 pixels at 400 % zoom is 320 CSS pixels wide.
const WINDOWS: [(&str, u32, u32, &str); 4] = [
    ("light", 1200, 1, "light"),
    ("dark", 1200, 1, "dark"),
    ("narrow", 360, 1, "light"),
    ("zoomed", 320, 4, "light"),
];

const OVERFLOW: &str =
    "document.documentElement.scrollWidth - document.documentElement.clientWidth";

fn window(page: &mut Page, width: u32, scale: u32, colours: &str) {
    let size = json!({"width": width, "height": 1400 / scale, "deviceScaleFactor": scale, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", &size);
    let features = json!({"features": [{"name": "prefers-color-scheme", "value": colours}]});
    page.call("Emulation.setEmulatedMedia", &features);
    // Charts follow a window some time after it has changed.
    page.evaluate("new Promise(done => setTimeout(done, 300))");
}

/// No serious finding, and nothing wider than the window, with every section open.
fn anybody_reads(name: &str, html: &str) {
    let Some(mut page) = open(name, html, 1200) else {
        return;
    };
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })");
    for (form, width, scale, colours) in WINDOWS {
        window(&mut page, width, scale, colours);
        keep(&mut page, &format!("{name}-{form}"));
        assert_eq!(page.evaluate(OVERFLOW), 0, "{name}, {form}");
        let Some(found) = axe::serious(&mut page) else {
            println!("SKIP access::{name}: {}", axe::LACKS);
            return;
        };
        assert_eq!(found, Vec::<String>::new(), "{name}, {form}");
    }
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn anybody_reads_the_report_of_a_search() {
    anybody_reads("search", &loadline_report::render_html(&fixture::search()));
}

#[test]
fn anybody_reads_the_report_of_a_deployment() {
    anybody_reads(
        "deployment",
        &loadline_report::render_html(&drawings::cheapest()),
    );
}

#[test]
fn anybody_reads_the_report_for_a_mail() {
    anybody_reads("mail", &loadline_report::render_mail(&fixture::search()));
}

#[test]
fn anybody_reads_a_comparison() {
    let comparison = loadline_report::compare::compare(&fixture::search(), &drawings::cheapest());
    let html = loadline_report::compare::comparison_html(&comparison);
    anybody_reads("comparison", &html);
}

#[test]
fn sections_open_and_close_by_keyboard_and_a_link_opens_its_own() {
    let html = loadline_report::render_html(&fixture::search());
    let Some(mut page) = open("keyboard", &html, 1200) else {
        return;
    };
    let is_open = "document.querySelector('#memory > details').open";
    assert_eq!(page.evaluate(is_open), false);
    page.evaluate("document.querySelector('#memory summary').focus()");
    for kind in ["keyDown", "keyUp"] {
        let enter = json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"});
        page.call("Input.dispatchKeyEvent", &enter);
    }
    page.wait_until(is_open);
    page.evaluate("location.hash = '#trials'");
    page.wait_until("document.querySelector('#trials > details').open");
    page.evaluate("document.getElementById('unfold').click()");
    let closed = "document.querySelectorAll('main > section > details:not([open])').length";
    assert_eq!(page.evaluate(closed), 0);
    page.evaluate("document.getElementById('unfold').click()");
    assert_eq!(
        page.evaluate("document.querySelectorAll('main > section > details[open]').length"),
        0
    );
    assert_eq!(page.messages(), Vec::<String>::new());
}
