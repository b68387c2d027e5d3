use super::*;

fn groups(names: &[&str]) -> Vec<Vec<String>> {
    let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let text = |path: &PathBuf| path.display().to_string();
    let groups = group_files(&paths).into_iter();
    groups
        .map(|group| group.iter().map(text).collect())
        .collect()
}

#[test]
fn files_of_a_rotation_are_one_log() {
    let set = [
        "gc.log",
        "gc.log.0",
        "gc.log.07",
        "gc.log.999.gz",
        "gc.log.1.current",
    ];
    assert_eq!(groups(&set), [set]);
}

/// `file=gc.log.%p`: the numbers are process ids.
#[test]
fn logs_of_several_processes_are_several_logs() {
    assert_eq!(
        groups(&["gc.log.12345", "gc.log.12399", "gc.log.12345.0"]),
        [vec!["gc.log.12345", "gc.log.12345.0"], vec!["gc.log.12399"]]
    );
}
