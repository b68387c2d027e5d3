//! What SPECIFICATION says was seen in a kept run is what the record of that run says today.
//!
//! Runs that take a quiet machine and many minutes are not repeated by tests; their records are kept,
//! and read here as a user would read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn record(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../records")
        .join(name)
}

/// What `loadline show --full` prints of a record, in one line.
fn shown(name: &str) -> String {
    let mut show = Command::new(env!("CARGO_BIN_EXE_loadline"));
    let show = show.args(["show", "--full"]).arg(record(name));
    let output = show.output().expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The numbers that stand before `after` in what follows each `before`.
fn numbers(text: &str, before: &str, after: &str) -> Vec<f64> {
    let parts = text.split(before).skip(1);
    let numbers = parts.filter_map(|part| {
        let words = part.split(after).next()?;
        words.rsplit(' ').next()?.parse().ok()
    });
    numbers.collect()
}

/// Row 59: how much sooner each start-up cache was ready, compared with the JDK's own archive.
#[test]
fn start_up_caches_saved_what_is_promised() {
    let saved = |name: &str| numbers(&shown(name), "requests: ready in ", " % less");
    let spring = saved("2026-11-22-class-cache-spring/result.json.gz");
    assert_eq!(spring.len(), 2, "JDK 17 and 25: {spring:?}");
    assert!(spring.iter().all(|saved| *saved >= 30.0), "{spring:?}");
    let tomcat = saved("2026-11-22-class-cache/result.json.gz");
    assert_eq!(tomcat.len(), 3, "one on JDK 17, two on 25: {tomcat:?}");
    assert!(tomcat.iter().all(|saved| *saved >= 25.0), "{tomcat:?}");
    assert!(tomcat.iter().any(|saved| *saved >= 30.0), "{tomcat:?}");
}

/// Row 252: Tomcat in an image with an OpenJ9 class cache filled by its build, compared with an
/// image without; medians of pairs that ran in alternation.
#[test]
fn a_class_cache_in_the_image_saved_what_is_promised() {
    let path = record("2026-11-25-shared-classes-image/trials.csv");
    let text = fs::read_to_string(path).expect("the record is there");
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let column = |name: &str| head.iter().position(|n| *n == name).expect("a column");
    let configuration = column("configuration");
    let of = |wanted: &str, name: &str| -> Vec<f64> {
        let rows = lines.clone().filter_map(|line| {
            // The one field with a comma in it.
            let (_, rest) = line.split_once('"')?;
            let (told, rest) = rest.split_once('"')?;
            let value = rest.split(',').nth(column(name) - configuration)?;
            (told == wanted).then(|| value.parse().expect("a number"))
        });
        rows.collect()
    };
    let ratio = |name: &str| {
        let without = of("512Mi, 1 CPU -Xshareclasses:none", name);
        let image = "512Mi, 1 CPU image localhost/loadline-tomcat:openj9-scc";
        let with = of(image, name);
        assert_eq!((without.len(), with.len()), (10, 10), "pairs");
        let mut ratios: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        f64::midpoint(ratios[4], ratios[5])
    };
    let (start, memory) = (ratio("start_s"), ratio("start_rss_bytes"));
    assert!(start <= 0.70, "{start}");
    assert!(memory <= 1.02, "{memory}");
}

/// Row 60: the start time of each CPU limit between others, predicted without it.
#[test]
fn start_times_between_limits_were_predicted() {
    let text = shown("2026-11-22-start-vs-cpu/result.json.gz");
    let within = numbers(&text, "left out of the fit, is predicted within", " %");
    assert_eq!(within.len(), 1, "{text}");
    assert!(within[0] <= 10.0, "{within:?}");
}

/// Row 91: every start that plain java survived, the launcher's did too, and none was killed.
#[test]
fn the_launcher_started_wherever_plain_java_did() {
    let path = record("2026-11-22-launcher-spring/cells.csv");
    let text = fs::read_to_string(path).expect("the record is there");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let column = |name: &str| head.iter().position(|n| *n == name).expect("a column");
    let (how, started, kills) = (column("how"), column("started"), column("oom_kills"));
    let mut cells: BTreeMap<Vec<&str>, BTreeMap<&str, bool>> = BTreeMap::new();
    let mut starts = 0;
    for row in lines {
        assert_eq!(row[kills], "0", "{row:?}");
        let cell = cells.entry(row[..how].to_vec()).or_default();
        cell.insert(row[how], row[started] == "yes");
        starts += 1;
    }
    assert_eq!(starts, 63);
    for (cell, of) in &cells {
        let (Some(plain), Some(launch)) = (of.get("plain"), of.get("launch")) else {
            continue;
        };
        assert!(*launch || !plain, "{cell:?}");
    }
    let sizes: std::collections::BTreeSet<_> = cells.keys().map(|cell| &cell[..3]).collect();
    assert_eq!(sizes.len(), 26, "13 sizes on two JDKs");
}

/// Row 15: what a request costs by each rule, at the size and rate that `size` chose; its own answer
/// has the JVM's defaults.
#[test]
fn no_rule_was_cheaper_than_the_answer() {
    let page = record("measurements/cheapest.md");
    let text = fs::read_to_string(page).expect("the page is there");
    let (_, table) = text.split_once("| rule |").expect("its table");
    // The last price of a cell: per million requests.
    let price = |cell: &str| -> Option<f64> {
        let number = cell.rsplit('$').next()?;
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.');
        number[..end.unwrap_or(number.len())].parse().ok()
    };
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let prices: Vec<Vec<f64>> = rows
        .map(|row| row.split('|').skip(2).filter_map(price).collect())
        .collect();
    assert_eq!(prices.len(), 4, "four rules: {prices:?}");
    for rule in &prices {
        assert_eq!(rule.len(), 2, "two services: {prices:?}");
        for (rule, own) in rule.iter().zip(&prices[0]) {
            assert!(rule >= own, "{prices:?}");
        }
    }
}
