//! The emulator against recorded output of real JVMs (`tests/data`, see its README).

use std::collections::BTreeMap;
use std::path::Path;

use loadline_sizing::hotspot::{self, MachineSize};
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet};

/// Predicted flags by name, values as PrintFlagsFinal prints them.
fn predict(jdk: &str, memory_mib: u64, cpus: u32, options: &str) -> BTreeMap<&'static str, String> {
    let jdk = JdkRelease::for_hotspot(jdk.parse().expect("a recorded JDK version"));
    let machine = MachineSize {
        memory: Bytes::from_mib(memory_mib),
        cpus,
    };
    let options = JvmOptionSet::from_words(options.split_whitespace());
    let prediction = hotspot::predict(jdk, machine, &options).expect("the recorded JVM started");
    let flags = prediction.printed_flags().into_iter();
    flags
        .map(|flag| (flag.name, flag.value.to_string()))
        .collect()
}

fn table(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(path).expect("recorded data");
    let row = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.lines().map(row);
    (lines.next().expect("a header"), lines.collect())
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

#[test]
fn equals_every_row_of_the_240_row_grid() {
    let (_, rows) = table(&data("hotspot-ergonomics.csv"));
    assert_eq!(rows.len(), 240);
    let columns = [
        "MaxHeapSize",
        "InitialHeapSize",
        "MinHeapSize",
        "MaxNewSize",
        "G1HeapRegionSize",
        "ParallelGCThreads",
        "ConcGCThreads",
        "G1ConcRefinementThreads",
        "CICompilerCount",
        "ReservedCodeCacheSize",
    ];
    for row in rows {
        let got = predict(
            &row[0],
            row[1].parse().unwrap(),
            row[2].parse().unwrap(),
            "",
        );
        assert_eq!(got[format!("Use{}GC", row[3]).as_str()], "true", "{row:?}");
        for (column, expected) in columns.iter().zip(&row[4..]) {
            assert_eq!(got[column], *expected, "{column} of {row:?}");
        }
    }
}

#[test]
fn equals_every_recorded_flag_of_seventeen_option_sets() {
    let path = std::env::var_os("LOADLINE_GRID").map_or(data("print-flags-final.csv"), Into::into);
    let (header, rows) = table(&path);
    let mut compared = 0;
    let mut wrong = Vec::new();
    for row in &rows {
        let got = predict(
            &row[0],
            row[1].parse().unwrap(),
            row[2].parse().unwrap(),
            &row[3],
        );
        for (name, expected) in header
            .iter()
            .zip(row)
            .skip(4)
            .filter(|(_, e)| !e.is_empty())
        {
            compared += 1;
            let got = got
                .get(name.as_str())
                .map_or("(not predicted)", String::as_str);
            if got != expected {
                wrong.push(format!(
                    "{name}: {got}, recorded {expected}, {:?}",
                    &row[..4]
                ));
            }
        }
    }
    assert!(compared > 20 * rows.len());
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

/// As 17.0.15 and 25.0.3 print them.
#[test]
fn metaspace_starts_where_it_is_told_to() {
    for (options, wanted) in [
        ("", "22020096"),
        ("-XX:MetaspaceSize=96M", "100663296"),
        ("-XX:MetaspaceSize=100000001", "99942400"),
        ("-XX:MetaspaceSize=30m -XX:MaxMetaspaceSize=24m", "25165824"),
        ("-XX:MaxMetaspaceSize=16m", "16777216"),
        ("-XX:MetaspaceSize=0", "65536"),
    ] {
        let got = predict("17.0.15", 2048, 2, options);
        assert_eq!(got["MetaspaceSize"], wanted, "{options}");
    }
}
