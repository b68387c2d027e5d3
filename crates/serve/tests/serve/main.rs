//! The live page as a browser meets it: a store of a thousand trials, a run that begins, is killed
//! and goes on while the page is open, fifty pages at a time, and requests that are refused.

// A skip is said on stdout, where the test runner counts it.
#![allow(clippy::print_stdout)]

// Each of these has more than one crate uses.
#[path = "../../../../tests/browser/axe.rs"]
mod axe;
#[allow(dead_code)]
#[path = "../../../../tests/browser/devtools.rs"]
mod devtools;
#[allow(dead_code)]
#[path = "../../../report/tests/report/fixture.rs"]
mod fixture;
mod site;

use std::time::{Duration, Instant};

use devtools::Page;
use loadline_runner::store::ResultStatus;
use site::{Site, TOKEN};

fn open(name: &str, site: &Site, path: &str, width: u32) -> Option<Page> {
    let page = Page::open(&site.url(path), width);
    if page.is_none() {
        println!("SKIP serve::{name}: no chromium in PATH (Debian package chromium)");
    }
    page
}

fn keep(page: &mut Page, name: &str) {
    if let Some(directory) = std::env::var_os("LOADLINE_SCREENSHOTS") {
        let path = std::path::PathBuf::from(directory).join(format!("serve-{name}.png"));
        std::fs::write(path, page.screenshot()).expect("writable");
    }
}

#[test]
fn a_thousand_trials_are_listed_and_each_leads_to_its_report_and_its_trend() {
    let site = Site::new();
    let ids: Vec<String> = (0..40).map(|i| site.ended(i, 25)).collect();
    let overview = site.get("/");
    assert_eq!(overview.status, 200);
    assert_eq!(overview.body.matches("/report\">").count(), 40);
    let report = site.get(&format!("/results/{}/report", ids[7]));
    assert!(
        report.status == 200 && report.body.contains("id=\"verdict\""),
        "{}",
        report.status
    );
    let trend = site.get(&format!("/results/{}/trend", ids[7]));
    assert_eq!(
        trend.body.matches("<svg").count(),
        4,
        "each figure is drawn"
    );
    assert_eq!(
        trend.body.matches("<tr>").count(),
        41,
        "a row a release, and the head"
    );
    // A prefix of an id is enough, as on the command line; an ended result has no live page.
    let moved = site.get(&format!("/results/{}", ids[7]));
    assert_eq!(
        (moved.status, moved.header("location")),
        (303, Some(format!("/results/{}/report", ids[7])))
    );
    assert_eq!(site.get("/results/ffff").status, 404);
    assert_eq!(site.get("/results/last").status, 404);
}

#[test]
fn a_visitor_without_token_or_session_reads_nothing_and_stops_nothing() {
    let site = Site::new();
    let running = site.running();
    for host in ["localhost", "127.0.0.1", "evil.example:80"] {
        for path in ["/", "/events", &format!("/results/{running}"), "/?token=0"] {
            let refused = site.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(refused.status, 401, "{host} {path}");
            assert!(!refused.body.contains(&running[..8]), "{host} {path}");
        }
    }
    let stop = |headers: &str| {
        site.send(&format!(
            "POST /results/{running}/stop HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 0\r\n\r\n"
        ))
    };
    let known = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(stop("").status, 401);
    assert_eq!(stop(&known).status, 403);
    let wrong = "X-Loadline-Secret: 00112233445566778899aabbccddeeff\r\n";
    assert_eq!(stop(&format!("{known}{wrong}")).status, 403);
    assert_eq!(site.get(&format!("/results/{running}/stop")).status, 405);
    let put = format!("PUT / HTTP/1.1\r\nHost: localhost\r\n{known}\r\n");
    assert_eq!(site.send(&put).status, 405);
}

#[test]
fn the_first_visit_leaves_a_cookie_without_the_token_and_no_token_in_the_address() {
    let site = Site::new();
    let visit = |path: &str, headers: &str| {
        site.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: node-1\r\n{headers}\r\n"
        ))
    };
    let first = visit(&format!("/results/0190/trend?token={TOKEN}"), "");
    let location = first.header("location");
    assert_eq!(
        (first.status, location.as_deref()),
        (303, Some("/results/0190/trend"))
    );
    let cookie = first.header("set-cookie").expect("a cookie");
    let is_strict = cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict");
    assert!(is_strict && !cookie.contains(TOKEN), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair");
    assert_eq!(visit("/", &format!("Cookie: {pair}\r\n")).status, 200);
    let stolen = format!("Cookie: loadline={TOKEN}\r\n");
    assert_eq!(visit("/", &stolen).status, 401, "the token is no session");
    let away = visit(&format!("//evil.example/?token={TOKEN}"), "");
    assert_eq!(
        away.header("location").as_deref(),
        Some("/"),
        "a link leads to no other server"
    );
}

#[test]
fn a_scraper_gets_each_family_once_with_what_runs() {
    let site = Site::new();
    let ended = site.ended(1, 5);
    let empty = site.get("/metrics");
    assert_eq!((empty.status, empty.body.as_str()), (200, "# EOF\n"));
    let running = [site.running(), site.running()];
    let asked = format!("GET /metrics?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let metrics = site.send(&asked);
    let kind = metrics.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    for id in &running {
        assert!(metrics.body.contains(id.as_str()), "{}", metrics.body);
    }
    assert!(!metrics.body.contains(&ended), "it runs no more");
    let types = metrics
        .body
        .matches("# TYPE loadline_proof_starts ")
        .count();
    assert_eq!((types, metrics.body.matches("# EOF").count()), (1, 1));
    let refused = site.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(refused.status, 401);
}

#[test]
fn fifty_pages_follow_and_each_hears_of_the_trial() {
    let site = Site::new();
    let trial = site.running_trial(&site.running());
    trial.measures();
    let pages: Vec<_> = (0..50).map(|_| site.follow()).collect();
    for mut page in pages {
        let text = page.until("\"phase\":\"measure\"", Duration::from_secs(20));
        // 40 ms of CPU time and 5 ms throttled in each tenth of a second.
        assert!(
            text.contains("\"cpus\":0.4,\"throttled_cpus\":0.05"),
            "{text}"
        );
        assert!(text.contains("event: parts"), "{text}");
    }
}

#[test]
fn what_runs_is_drawn_and_a_killed_run_that_goes_on_comes_back() {
    let site = Site::new();
    site.ended(1, 12);
    let result = site.running();
    let trial = site.running_trial(&result);
    trial.measures();
    let Some(mut page) = open(
        "what_runs_is_drawn",
        &site,
        &format!("/results/{result}"),
        1100,
    ) else {
        return;
    };
    page.wait_until("document.getElementById('phase').textContent.includes('measure')");
    page.wait_until("document.querySelectorAll('canvas').length === 4");
    page.wait_until("document.getElementById('log').textContent.includes('<b>ready</b>')");
    keep(&mut page, "running-light");
    dark(&mut page);
    keep(&mut page, "running-dark");
    // Killed: the page shows the state so far.
    site.stands(&result, ResultStatus::Interrupted);
    page.wait_until("location.pathname.endsWith('/report') && document.readyState === 'complete'");
    page.go(&site.url("/"));
    page.wait_until("!document.getElementById('list').textContent.includes('Running now')");
    keep(&mut page, "overview-dark");
    // Resumed while the page is open.
    site.stands(&result, ResultStatus::Running);
    page.wait_until("document.getElementById('list').textContent.includes('Running now')");
    assert_eq!(
        page.messages(),
        Vec::<String>::new(),
        "nothing on the console"
    );
}

#[test]
fn pages_fit_a_phone_and_anybody_reads_them() {
    let site = Site::new();
    let ended = site.ended(1, 25);
    let running = site.running();
    site.running_trial(&running).measures();
    let name = "pages_fit_a_phone_and_anybody_reads_them";
    for (width, colours) in [(360, "narrow"), (1100, "dark")] {
        let Some(mut page) = open(name, &site, "/", width) else {
            return;
        };
        if colours == "dark" {
            dark(&mut page);
        }
        for (of, path) in [
            ("overview", "/".to_owned()),
            ("running", format!("/results/{running}")),
            ("trend", format!("/results/{ended}/trend")),
        ] {
            page.go(&site.url(&path));
            let is_drawn = "document.querySelectorAll('#now').length === document.querySelectorAll('#now canvas').length / 4";
            page.wait_until(is_drawn);
            let wide = page.evaluate("document.documentElement.scrollWidth");
            let fits = wide.as_u64().is_some_and(|w| w <= u64::from(width));
            assert!(fits, "{of}, {colours}: {wide}");
            keep(&mut page, &format!("{of}-{colours}"));
            let Some(found) = axe::serious(&mut page) else {
                println!("SKIP serve::{name}: {}", axe::LACKS);
                return;
            };
            assert_eq!(found, Vec::<String>::new(), "{of}, {colours}");
        }
    }
}

#[test]
fn a_trend_is_drawn() {
    let site = Site::new();
    let ids: Vec<String> = (0..9).map(|i| site.ended(i, 25)).collect();
    let Some(mut page) = open(
        "a_trend_is_drawn",
        &site,
        &format!("/results/{}/trend", ids[0]),
        1100,
    ) else {
        return;
    };
    assert_eq!(page.evaluate("document.querySelectorAll('svg').length"), 4);
    for version in ["1.4.2", "4000000-dirty", "1.4.8"] {
        let drawn = format!(
            "[...document.querySelectorAll('svg text')].filter(t => t.textContent === '{version}').length"
        );
        assert_eq!(page.evaluate(&drawn), 4, "{version}");
    }
    keep(&mut page, "trend-light");
    assert_eq!(page.messages(), Vec::<String>::new());
}

#[test]
fn it_ends_at_once_with_pages_open() {
    let site = Site::new();
    site.running();
    let _page = site.follow();
    let begin = Instant::now();
    drop(site);
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "a page holds nothing up"
    );
}

fn dark(page: &mut Page) {
    page.call(
        "Emulation.setEmulatedMedia",
        &serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
    );
}
