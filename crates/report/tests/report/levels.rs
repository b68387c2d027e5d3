//! Levels that run other applications: the labels and images belong to the right level.

use loadline_analysis::record::{ImageIdentity, LevelApplication};
use loadline_report::{ResultView, render_terminal};

use crate::fixture;

const DIGEST: &str = "localhost/orders@sha256:0123";

/// The matrix: its second set is an image and its third a server without a JVM.
fn view() -> ResultView {
    let mut view = fixture::matrix();
    for trial in &mut view.trials {
        let configuration = &mut trial.configuration;
        configuration.jvm_options.clear();
        if configuration.label.ends_with("c1") {
            configuration.label = configuration.label.replace("c1", "openj9");
            configuration.application = Some(LevelApplication {
                command: Vec::new(),
                image: Some("localhost/orders:openj9".to_owned()),
                engine: None,
            });
        } else if configuration.label.ends_with("serial") {
            configuration.label = configuration.label.replace("serial", "native");
            configuration.application = Some(LevelApplication {
                command: vec!["build/orders".to_owned()],
                image: None,
                engine: None,
            });
        }
    }
    view.machine.level_images = vec![ImageIdentity {
        engine: "podman".to_owned(),
        reference: "localhost/orders:openj9".to_owned(),
        id: "0123".to_owned(),
        pinned: Some(DIGEST.to_owned()),
        tool_options: None,
        version: None,
        revision: None,
    }];
    view
}

#[test]
fn it_is_said_which_application_each_label_is() {
    let mut view = view();
    // A level that names the image of the application once more is no second one.
    view.machine.image = view.machine.level_images.first().cloned();
    let text = render_terminal(&view, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("started by podman").count(), 1, "{text}");
    for line in [
        "- default: the experiment's own application",
        "- openj9: image localhost/orders:openj9",
        "- native: build/orders",
        "image localhost/orders@sha256:0123 (openj9), started by podman",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
