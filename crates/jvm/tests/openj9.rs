//! The options of OpenJ9's shared class cache on a real OpenJ9, where there is one.

use loadline_jvm::cache::scc::{self, Statistics};
use loadline_jvm::detect::{Found, Places};
use loadline_sizing::Bytes;
use loadline_sizing::Vm;

#[test]
fn a_real_openj9_takes_the_options() {
    let jdks = Found::look(&Places::of_process()).jdks;
    let Some(jdk) = jdks.iter().find(|jdk| jdk.kind == Vm::OpenJ9) else {
        println!("SKIP a_real_openj9_takes_the_options: no OpenJ9 JVM on this machine");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let java = |options: &[String]| {
        let mut command = std::process::Command::new(&jdk.java);
        let output = command.args(options).arg("-version").output();
        let output = output.expect("java runs");
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    java(&scc::populate(directory.path(), Bytes::from_mib(16)));
    let said = java(&[scc::print_statistics(directory.path())]);
    let statistics = Statistics::parse(&said).unwrap_or_else(|| panic!("no statistics: {said}"));
    assert!(statistics.classes > 100, "{statistics:?}");
    let said = java(&scc::attach(directory.path()));
    assert!(said.contains("OpenJ9"), "{said}");
    java(&[scc::destroy(directory.path())]);
}
