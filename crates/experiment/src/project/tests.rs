//! Project directories, and the experiment files made from them.

use std::fs;

use super::*;
use crate::Experiment;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }
    place
}

fn looked(place: &tempfile::TempDir, told: &ProjectOverrides) -> Result<Project, RunRefusal> {
    Project::inspect_directory(place.path(), told)
}

fn url(found: &Project) -> &str {
    found.load.as_ref().map_or("", |load| &load.url.value)
}

fn written(place: &tempfile::TempDir, project: &Project) -> (String, Experiment) {
    let text = project.to_toml();
    let path = place.path().join("loadline.toml");
    let read = Experiment::from_file_text(&text, &path, place.path());
    (text.clone(), read.unwrap_or_else(|e| panic!("{e}\n{text}")))
}

#[test]
fn the_load_goes_to_the_service_s_port_and_readiness_to_the_management_s() {
    let deploy = "apiVersion: v1\nkind: Service\nmetadata: {name: o}\nspec: {ports: [{port: 80, targetPort: web}]}\n---\n\
        apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: r/o:1, \
        ports: [{name: mgmt, containerPort: 8081}, {name: web, containerPort: 8080}], \
        readinessProbe: {httpGet: {path: /ready, port: mgmt}}}]}}}";
    let place = project(&[("k8s/deploy.yaml", deploy)]);
    let told = ProjectOverrides {
        url: Some("/owners".to_owned()),
        ..ProjectOverrides::default()
    };
    let found = looked(&place, &told).expect("it is found");
    assert_eq!(url(&found), "http://localhost:8080/owners");
    let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
    assert_eq!(url(&found), "http://localhost:8080/");
    assert_eq!(found.ready.map(|r| r.value), Some(":8081/ready".to_owned()));

    let unlisted = deploy.replace("{name: web, containerPort: 8080}", "");
    let by_number = unlisted.replace("targetPort: web", "targetPort: 8085");
    let by_variable = by_number.replace(
        "image:",
        "env: [{name: SERVER_PORT, value: '8181'}], image:",
    );
    for (text, port) in [(by_number, 8085), (by_variable, 8181)] {
        let place = project(&[("k8s/deploy.yaml", &text)]);
        let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
        assert_eq!(url(&found), format!("http://localhost:{port}/"));
    }
    let place = project(&[(
        "k8s/deploy.yaml",
        &deploy.replace("r/o:1", "'${REGISTRY}/o'"),
    )]);
    let refused = looked(&place, &ProjectOverrides::default()).expect_err("no image");
    assert_eq!(
        refused.why,
        "Deployment/o in k8s/deploy.yaml names no image that can be pulled"
    );

    let settings = "server.port=8080\nmanagement.server.port=9001\n";
    let docker = "FROM maven AS build\nENV MAVEN_OPTS=-Xmx1g\nFROM x\nENV A=b\nENTRYPOINT [\"java\", \"-Xmx256m\", \"-jar\", \"/a.jar\"]\n";
    let place = project(&[
        ("pom.xml", POM),
        ("target/a.jar", ""),
        ("Dockerfile", docker),
        ("src/main/resources/application.properties", settings),
    ]);
    let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
    assert_eq!(url(&found), "http://localhost:8080/");
    let (_, experiment) = written(&place, &found);
    let ready = loadline_protocol::Readiness::Http {
        port: 9001,
        path: "/actuator/health".to_owned(),
    };
    assert_eq!(experiment.app.readiness, ready);
    assert_eq!(
        experiment.app.command,
        ["java", "-Xmx256m", "-jar", "target/a.jar"]
    );
}

#[test]
fn the_port_of_a_compose_file_is_the_first_of_its_tcp_ports() {
    for (ports, port, from) in [
        (
            "'8000-8010:8000-8010'",
            8000,
            "the first of 11 of the service",
        ),
        (
            "'127.0.0.1:9000-9001:8090-8091/tcp'",
            8090,
            "the first of 2 of",
        ),
        ("'53:53/udp', '[::1]:80:8090'", 8090, "the service o of"),
        (
            "{target: 53, protocol: udp}, {target: '8090', published: 80-90}",
            8090,
            "the service o",
        ),
        ("'${PORT:-80}:8090', 8091", 8090, "the first of 2 of"),
        ("'80:${PORT}'", 8080, "default"),
    ] {
        let compose = format!("services: {{o: {{image: 'r/o:1', ports: [{ports}]}}}}");
        let place = project(&[("compose.yaml", &compose)]);
        let found = Project::inspect_directory(place.path(), &ProjectOverrides::default());
        let load = found.expect("a project").load.expect("a load");
        let (url, wanted) = (&load.url, format!("http://localhost:{port}/"));
        assert!(
            url.value == wanted && url.from.contains(from),
            "{ports}: {url:?}"
        );
    }
}

#[test]
fn a_project_of_a_compose_file_alone_is_its_one_application() {
    let compose = "services: {orders: {image: 'r/orders:1', depends_on: [db], ports: ['80:8090']}, db: {image: 'postgres:17'}}";
    let place = project(&[("compose.yaml", compose)]);
    let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
    assert_eq!(
        found.starts.value,
        StartMethod::Image("r/orders:1".to_owned())
    );
    assert_eq!(url(&found), "http://localhost:8090/");
    for (limits, expected) in [
        ("mem_limit: 1.5g, cpus: 1.5", ["1.5", "1536Mi"]),
        (
            "deploy: {resources: {limits: {cpus: '0.5', memory: 768M}}}",
            ["0.5", "768Mi"],
        ),
        ("mem_limit: '${M}'", ["1", "512Mi"]),
    ] {
        let text = format!("services: {{orders: {{image: 'r/orders:1', {limits}}}}}");
        let place = project(&[("compose.yaml", &text)]);
        let found = looked(&place, &ProjectOverrides::default()).expect("it is found");
        let limits = found.limits.map(|(cpu, memory)| [cpu.value, memory.value]);
        assert_eq!(limits, Some(expected.map(str::to_owned)), "{text}");
    }
    let two = "services: {orders: {image: 'r/orders:1'}, carts: {image: 'r/carts:1'}}";
    let refused = looked(
        &project(&[("compose.yaml", two)]),
        &ProjectOverrides::default(),
    )
    .expect_err("two");
    assert!(
        refused.hint.contains("--compose compose.yaml --service"),
        "{}",
        refused.hint
    );
}

const POM: &str = "<project><parent><version>3.5.0</version></parent>\
    <artifactId>orders</artifactId><version>1</version><dependencies><dependency>\
    <artifactId>spring-boot-starter-actuator</artifactId></dependency></dependencies></project>";

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders}\n\
    spec:\n  template:\n    spec:\n      containers:\n      - name: orders\n        image: registry/orders:1.4\n        \
    ports: [{name: http, containerPort: 9090}]\n        \
    env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx200m}]\n        \
    resources: {limits: {cpu: 500m, memory: 300Mi}}\n        \
    readinessProbe: {httpGet: {path: /ready, port: http}}\n";

#[test]
fn a_maven_project_with_a_manifest_is_taken_from_both() {
    let place = project(&[
        ("pom.xml", POM),
        ("target/orders-1.jar", "x"),
        ("target/orders-1-sources.jar", "x"),
        ("target/original-orders-1.jar", "x"),
        (
            "src/main/resources/application.properties",
            "server.port = 9090\n",
        ),
        ("k8s/deploy.yaml", DEPLOYMENT),
    ]);
    let twice = ProjectOverrides {
        memory: Some("1Gi".to_owned()),
        ..ProjectOverrides::default()
    };
    let refused = looked(&place, &twice).expect_err("two sizes");
    assert!(refused.why.contains("already sets them"), "{refused}");
    let found = looked(&place, &ProjectOverrides::default()).expect("a project");
    let (text, experiment) = written(&place, &found);
    insta::assert_snapshot!(text, @r#"
    # What this service promises, and how it is tried: `loadline verify` reads it.
    # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

    slo = "p99<250ms,errors<1%" # default: write what you promise them

    # Limits, JVM options, environment and probes are read from it.
    manifest = "k8s/deploy.yaml" # Deployment/orders in k8s/deploy.yaml

    [app]
    command = ["java", "-jar", "target/orders-1.jar"] # the only jar in target, built by Maven
    directory = "." # where this file lies

    [load]
    url = "http://localhost:9090/ready" # port 9090: the probe in k8s/deploy.yaml; the path is not a request of your users: give theirs, or a profile of your access log
    rate = "50/s" # default: write what your users send
    "#);
    assert_eq!(
        experiment.base.memory.map(|m| m.to_string()),
        Some("300Mi".to_owned())
    );
    assert_eq!(
        experiment.base.cpu.map(|c| c.to_string()),
        Some("500m".to_owned())
    );
    assert_eq!(experiment.app.env["JAVA_TOOL_OPTIONS"], "-Xmx200m");
}

#[test]
fn the_load_goes_below_the_path_of_the_application() {
    for setting in [
        "server.servlet.context-path=/shop",
        "spring.webflux.base-path=shop/",
        "quarkus.http.root-path=${ROOT:/shop}",
    ] {
        let place = project(&[
            ("pom.xml", "<project/>"),
            ("target/a.jar", "x"),
            ("src/main/resources/application.properties", setting),
        ]);
        let found = looked(&place, &ProjectOverrides::default()).expect("a project");
        let text = found.to_toml();
        assert!(text.contains("\"http://localhost:8080/shop/\""), "{text}");
    }
}

#[test]
fn a_gradle_project_has_its_jar_its_port_and_what_it_needs() {
    let compose = "services:\n  app:\n    build: .\n    depends_on: [db]\n    ports: ['8085:8085']\n  \
                   db:\n    image: postgres:17\n    expose: [5432]\n  adminer:\n    image: adminer\n";
    let place = project(&[
        (
            "build.gradle.kts",
            "dependencies { implementation(\"org.springframework.boot:spring-boot-starter-actuator\") }",
        ),
        ("gradlew", ""),
        ("build/libs/shop-2-plain.jar", "x"),
        ("build/libs/shop-2.jar", "x"),
        (
            "src/main/resources/application.yml",
            "server:\n  port: 8085\n  servlet:\n    context-path: /shop\n",
        ),
        ("compose.yaml", compose),
    ]);
    let told = ProjectOverrides {
        url: Some("/items?page=1".to_owned()),
        memory: Some("256Mi".to_owned()),
        ..ProjectOverrides::default()
    };
    let found = looked(&place, &told).expect("a project");
    let text = found.to_toml();
    insta::assert_snapshot!(text, @r#"
    # What this service promises, and how it is tried: `loadline verify` reads it.
    # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

    slo = "p99<250ms,errors<1%" # default: write what you promise them

    [app]
    command = ["java", "-jar", "build/libs/shop-2.jar"] # the only jar in build/libs, built by Gradle
    directory = "." # where this file lies
    ready = { http = "/shop/actuator/health" } # spring-boot-starter-actuator in build.gradle.kts

    # What it needs next to it.
    [compose]
    file = "compose.yaml" # the service app of compose.yaml
    services = ["db"]

    [load]
    url = "http://localhost:8085/items?page=1" # path given, port 8085: src/main/resources/application.yml
    rate = "50/s" # default: write what your users send

    [limits]
    cpu = "1" # default: nothing says what is shipped; `loadline size` finds it
    memory = "256Mi" # given
    "#);
    let read = crate::ExperimentFile::from_toml(&text, Path::new("loadline.toml"));
    read.expect("an experiment file");
}

#[test]
fn an_image_alone_is_taken_from_the_manifest() {
    let place = project(&[("deploy/app.yaml", DEPLOYMENT), ("Dockerfile", "FROM x\n")]);
    let found = looked(&place, &ProjectOverrides::default()).expect("a project");
    assert_eq!(
        found.starts.value,
        StartMethod::Image("registry/orders:1.4".to_owned())
    );
    let (text, experiment) = written(&place, &found);
    assert!(
        text.contains("ready") && !text.contains("[limits]"),
        "{text}"
    );
    assert!(experiment.app.image.is_some());
}

#[test]
fn a_job_has_no_load_and_no_probe() {
    let job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: {spec: \
        {containers: [{name: app, image: r/nightly:1, args: [--day, today], env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx200m}], \
        resources: {limits: {cpu: 1, memory: 300Mi}}, readinessProbe: {httpGet: {path: /, port: 80}}}]}}}}}\n";
    let place = project(&[("k8s/nightly.yaml", job)]);
    let found = looked(&place, &ProjectOverrides::default()).expect("a project");
    let (text, experiment) = written(&place, &found);
    insta::assert_snapshot!(text, @r#"
    # What this service promises, and how it is tried: `loadline verify` reads it.
    # Every key: docs/reference/experiment.schema.json (loadline schema experiment).

    slo = "exit=0" # default: add time<10m, or slower<10% than with the most memory

    # Limits, JVM options, environment and probes are read from it.
    manifest = "k8s/nightly.yaml" # CronJob/nightly in k8s/nightly.yaml

    [app]
    image = "r/nightly:1" # CronJob/nightly in k8s/nightly.yaml
    ends = true # a job: judged by its exit, its time and its memory
    "#);
    assert_eq!(experiment.app.command, ["--day", "today"]);
    let called = ProjectOverrides {
        url: Some("/".to_owned()),
        ..ProjectOverrides::default()
    };
    let refused = looked(&place, &called).expect_err("a load");
    assert!(refused.hint.contains("leave out --url"), "{refused}");
    let jar = project(&[
        ("pom.xml", "<project/>"),
        ("target/a.jar", "x"),
        ("k8s/migrate.yaml", job),
    ]);
    let service = looked(&jar, &ProjectOverrides::default()).expect("a project");
    assert!(service.load.is_some() && service.manifest.is_none());
    assert!(
        service.left_out[0].contains("--job"),
        "{:?}",
        service.left_out
    );
    let told = ProjectOverrides {
        ends: true,
        ..ProjectOverrides::default()
    };
    let (text, _) = written(&jar, &looked(&jar, &told).expect("a project"));
    assert!(
        text.contains("ends = true") && !text.contains("[load]"),
        "{text}"
    );
}

#[test]
fn what_is_missing_is_said_with_what_makes_it() {
    let maven = project(&[("pom.xml", POM), ("mvnw", "")]);
    let refused = looked(&maven, &ProjectOverrides::default()).expect_err("no jar");
    assert!(refused.why.contains("no jar is built"), "{refused}");
    assert!(refused.hint.contains("./mvnw package"), "{}", refused.hint);
    let image = project(&[("Dockerfile", "FROM x\n")]);
    let refused = looked(&image, &ProjectOverrides::default()).expect_err("no name");
    assert!(refused.hint.contains("--image"), "{}", refused.hint);
    let empty = project(&[]);
    let refused = looked(&empty, &ProjectOverrides::default()).expect_err("nothing");
    assert!(refused.why.contains("no jar"), "{refused}");
    let two = project(&[
        ("pom.xml", POM),
        ("target/a.jar", "x"),
        ("target/b.jar", "x"),
    ]);
    let refused = looked(&two, &ProjectOverrides::default()).expect_err("two jars");
    assert!(refused.why.contains("a.jar, target/b.jar"), "{refused}");
}

#[test]
fn a_pipe_is_no_dockerfile() {
    let place = project(&[]);
    let made = std::process::Command::new("mkfifo")
        .arg(place.path().join("Dockerfile"))
        .status();
    assert!(made.is_ok_and(|made| made.success()));
    // With a file of that name it reads on.
    let refusal = looked(&place, &ProjectOverrides::default()).expect_err("nothing to start");
    assert!(refusal.why.contains("no jar, image"), "{refusal}");
}
