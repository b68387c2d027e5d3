//! Every experiment that ships can be read, says what it asks, and how to read the answer.

use std::fs;
use std::path::Path;

use loadline_experiment::Experiment;

#[test]
fn every_shipped_experiment_is_valid_and_explains_itself() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let experiment = Experiment::from_file_text(&text, &path, path.parent().unwrap())
            .unwrap_or_else(|error| panic!("{error}"));
        let name = path.display();
        assert!(experiment.question.is_some(), "{name} asks nothing");
        assert!(
            experiment.analysis.is_some(),
            "{name} does not say how to read it"
        );
        let mut labels: Vec<_> = experiment
            .configurations()
            .into_iter()
            .map(|c| c.label)
            .collect();
        let all = labels.len();
        labels.sort();
        labels.dedup();
        assert_eq!(
            labels.len(),
            all,
            "{name}: two configurations have one label"
        );
        count += 1;
    }
    assert!(count > 0, "no experiment in {}", folder.display());
}
