//! The artefacts of an Open Liberty that was measured by its start script.

use loadline_report::emit::{ProductionApplication, ReadinessCheck, StartCommand};

use crate::artefacts::{all, application, text};
use crate::fixture;

fn liberty(path: &str) -> ProductionApplication {
    let words = ["build/wlp/bin/server", "run", "orders"].map(str::to_owned);
    ProductionApplication {
        command: StartCommand::read(&words).expect("it is the start script"),
        ready: Some(ReadinessCheck::Http {
            port: 8080,
            path: path.to_owned(),
        }),
        ..application()
    }
}

#[test]
fn its_image_has_the_options_where_liberty_reads_them() {
    let mut application = liberty("/health/ready");
    // Said to be left out, in a comment.
    application.env = ["---><x/><!--", "-----"]
        .map(|name| (name.to_owned(), "1".to_owned()))
        .into();
    let artefacts = all(&fixture::search(), &application).expect("a recommendation");
    let dockerfile = text(&artefacts, "Dockerfile");
    let (_, from) = dockerfile.split_once("FROM ").expect("a stage");
    insta::assert_snapshot!(from, @r#"
    ${BASE}
    # The installation that was measured: features, configuration, application.
    COPY ["wlp", "/opt/wlp"]
    COPY --chmod=0444 ["loadline.xml", "/opt/wlp/usr/servers/orders/configDropins/overrides/loadline.xml"]
    COPY --chmod=0444 ["jvm.options", "/opt/wlp/usr/servers/orders/configDropins/overrides/jvm.options"]
    # Its user may write in /tmp only.
    ENV WLP_OUTPUT_DIR="/tmp/liberty"
    ENV LOG_DIR="/tmp/liberty/logs"
    # Never root.
    USER 64999:64999
    EXPOSE 8080
    ENTRYPOINT ["/opt/wlp/bin/server", "run", "orders"]
    "#);
    let options = text(&artefacts, "jvm.options");
    let lines: Vec<&str> = options.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(
        lines,
        [
            "-XX:+UseSerialGC",
            "-XX:MaxMetaspaceSize=88m",
            "-XX:ReservedCodeCacheSize=48m"
        ]
    );
    let xml = text(&artefacts, "loadline.xml");
    assert!(xml.contains("host=\"*\" httpPort=\"8080\""), "{xml}");
    let comments = xml.lines().filter(|line| line.starts_with("<!--"));
    for line in comments {
        let inside = line
            .strip_prefix("<!--")
            .and_then(|line| line.strip_suffix("-->"));
        let inside = inside.expect("a comment");
        assert!(!inside.contains("--"), "no comment of XML: {line}");
    }
}

#[test]
fn its_pod_is_asked_where_mp_health_answers() {
    let manifest = |path: &str| {
        let artefacts = all(&fixture::search(), &liberty(path)).expect("a recommendation");
        text(&artefacts, "kubernetes.yaml")
    };
    let health = manifest("/health/ready");
    assert_eq!(health.matches("path: /health/ready").count(), 2, "{health}");
    assert_eq!(health.matches("path: /health/live").count(), 1, "{health}");
    let own = manifest("/ping");
    assert_eq!(own.matches("/health/live").count(), 0, "{own}");
    assert_eq!(own.matches("tcpSocket").count(), 1, "{own}");
}
