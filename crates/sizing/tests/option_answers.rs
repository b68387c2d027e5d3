//! Whether a JVM starts with options, against the recorded answers of real ones.

use loadline_sizing::hotspot::{self, MachineSize};
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet};

/// 1 in a column: this JDK ends at once.
const ANSWERS: &str = include_str!("data/option-answers.csv");

#[test]
fn a_jvm_starts_with_what_real_ones_start_with() {
    // As the machine that recorded them.
    let machine = MachineSize {
        memory: Bytes::from_gib(23),
        cpus: 2,
    };
    let mut wrong = Vec::new();
    for line in ANSWERS.lines().skip(1) {
        let mut parts = line.splitn(3, ',');
        let answers = [parts.next(), parts.next()].map(|answer| answer == Some("1"));
        let text = parts.next().unwrap();
        let options = JvmOptionSet::from_words(text.split(' '));
        for (jdk, is_refused) in ["17.0.15", "25.0.3"].into_iter().zip(answers) {
            let release = JdkRelease::for_hotspot(jdk.parse().unwrap());
            let found = hotspot::predict(release, machine, &options).err();
            if found.is_some() != is_refused {
                wrong.push(format!("{jdk} {text}: {found:?}"));
            }
        }
    }
    assert!(ANSWERS.lines().count() > 600);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
