//! The compatible calculators against recorded rows of the real programs.

use loadline_sizing::compat::{LauncherOutput, calculator, fabric8, openj9};
use loadline_sizing::{Bytes, JavaVersion, JvmOptionSet};

struct Row {
    source: String,
    total: Bytes,
    classes: u64,
    threads: u64,
    headroom: u64,
    extra: String,
    heap: String,
    metaspace: String,
    error: String,
}

fn rows() -> Vec<Row> {
    let text = include_str!("data/memory-calculator.csv");
    text.lines().skip(1).map(row).collect()
}

fn row(line: &str) -> Row {
    // The error is the one quoted field, and the last.
    let (plain, error) = match line.split_once('"') {
        Some((plain, error)) => (plain.trim_end_matches(','), error.trim_end_matches('"')),
        None => (line, ""),
    };
    let fields: Vec<&str> = plain
        .split(',')
        .chain(std::iter::repeat(""))
        .take(8)
        .collect();
    let number = |text: &str| text.parse().unwrap_or(0);
    Row {
        source: fields[0].to_owned(),
        total: fields[1].parse().expect("a total in the second column"),
        classes: number(fields[2]),
        threads: number(fields[3]),
        headroom: number(fields[4]),
        extra: fields[5].to_owned(),
        heap: fields[6].to_owned(),
        metaspace: fields[7].to_owned(),
        error: error.to_owned(),
    }
}

#[test]
fn paketo_and_cloud_foundry_rows_are_reproduced_to_the_letter() {
    let flavours = [
        ("paketo", calculator::Flavour::Paketo, 28),
        ("cloudfoundry", calculator::Flavour::CloudFoundry, 10),
    ];
    for (source, flavour, count) in flavours {
        let rows: Vec<Row> = rows()
            .into_iter()
            .filter(|row| row.source == source)
            .collect();
        for row in &rows {
            let options = JvmOptionSet::from_words(row.extra.split_whitespace());
            let input = calculator::CalculatorInput {
                total: row.total,
                classes: row.classes,
                threads: row.threads,
                headroom_percent: row.headroom,
                options: &options,
            };
            let what = format!("{source} {} {} {}", row.total, row.classes, row.extra);
            match calculator::calculate_memory(flavour, &input) {
                Err(refusal) => assert_eq!(refusal.text, row.error, "{what}"),
                Ok(answer) => {
                    assert_eq!(value(&answer, "-Xmx"), Some(row.heap.as_str()), "{what}");
                    let kept = options.setting("MaxMetaspaceSize").map(|s| s.value.clone());
                    let given = value(&answer, "-XX:MaxMetaspaceSize=").map(str::to_owned);
                    assert_eq!(given.or(kept), Some(row.metaspace.clone()), "{what}");
                }
            }
        }
        assert_eq!(rows.len(), count, "{source}");
    }
}

#[test]
fn cloud_foundry_prints_its_options_in_its_own_order() {
    let answer = calculator::calculate_memory(
        calculator::Flavour::CloudFoundry,
        &calculator::CalculatorInput {
            total: Bytes::from_gib(1),
            classes: 13_974,
            threads: 300,
            headroom_percent: 0,
            options: &JvmOptionSet::none(),
        },
    );
    assert_eq!(
        answer.unwrap().options.join(" "),
        "-XX:MaxDirectMemorySize=10M -XX:MaxMetaspaceSize=92821K -XX:ReservedCodeCacheSize=240M -Xss1M -Xmx392554K"
    );
}

#[test]
fn fabric8_rows_are_reproduced() {
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|r| r.source.starts_with("fabric8"))
        .collect();
    for row in &rows {
        let variable = |name: &str| {
            let words = row.extra.split_whitespace();
            words
                .filter_map(|word| word.split_once('='))
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v)
        };
        let number = |name: &str| variable(name).and_then(|value| value.parse().ok());
        let options = JvmOptionSet::from_words(variable("JAVA_OPTIONS"));
        let answer = fabric8::calculate(&fabric8::Fabric8Input {
            limit: Some(row.total),
            cpus: None,
            jdk: JavaVersion::from_feature(if row.source.ends_with('8') { 8 } else { 17 }),
            max_ratio: number("JAVA_MAX_MEM_RATIO"),
            init_ratio: number("JAVA_INIT_MEM_RATIO"),
            options: &options,
        });
        let set = options
            .setting("MaxHeapSize")
            .map(|setting| setting.value.as_str());
        let heap = value(&answer, "-Xmx").or(set).unwrap_or("none");
        assert_eq!(heap, row.heap, "{} {} {}", row.source, row.total, row.extra);
    }
    assert_eq!(rows.len(), 13);
}

#[test]
fn openj9_rows_are_reproduced() {
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|row| row.source == "openj9")
        .collect();
    for row in &rows {
        let answer = openj9::calculate_max_heap(row.total);
        assert_eq!(
            value(&answer, "-Xmx"),
            Some(row.heap.as_str()),
            "{}",
            row.total
        );
    }
    assert_eq!(rows.len(), 6);
}

fn value<'a>(answer: &'a LauncherOutput, prefix: &str) -> Option<&'a str> {
    let mut options = answer.options.iter();
    options.find_map(|option| option.strip_prefix(prefix))
}
