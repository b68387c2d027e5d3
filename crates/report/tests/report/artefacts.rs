//! The artefacts of a search, read back by a second parser.

use crate::{fixture, hostile};
use loadline_analysis::record::Provenance;
use loadline_report::emit::{Application, Artefact, EmitError, emit};
use serde_json::Value;

fn application() -> Application {
    Application {
        name: "spring-web".to_owned(),
        image: "registry.example/spring-web:1.4.2".to_owned(),
        base_image: "eclipse-temurin:17-jre".to_owned(),
        jar: "spring-web.jar".to_owned(),
        arguments: vec!["--server.port=8080".to_owned()],
        port: 8080,
        ready_path: Some("/health".to_owned()),
        replicas: 2,
        jdk: 17,
        launcher: false,
    }
}

fn text(artefacts: &[Artefact], name: &str) -> String {
    let artefact = artefacts.iter().find(|a| a.name == name);
    artefact.unwrap_or_else(|| panic!("{name}")).text.clone()
}

fn search() -> Vec<Artefact> {
    emit(&fixture::search(), &application()).expect("it has a recommendation")
}

#[test]
fn jvm_options_carry_their_evidence() {
    insta::assert_snapshot!(text(&search(), "jvm.options"), @"
    # Written by loadline 0.1.0 from result 01936f2a-ffff-7000-8000-000000000001.
    # Keeps p99<50ms,errors<0.1%,start<20s under GET /owners?lastName=Da at 300/s (open model, 30 s): 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence).
    # Use: java @jvm.options -jar ...   (JDK 9 and later)
    # the user: given; not searched
    -XX:+UseSerialGC
    # measured: trials 1-4, 6-22
    -XX:MaxMetaspaceSize=88m
    # calculated: from the limits, by formula
    -XX:ReservedCodeCacheSize=48m
    ");
}

#[test]
fn the_environment_file() {
    insta::assert_snapshot!(text(&search(), "java-tool-options.env"), @"
    # Written by loadline 0.1.0 from result 01936f2a-ffff-7000-8000-000000000001.
    # Keeps p99<50ms,errors<0.1%,start<20s under GET /owners?lastName=Da at 300/s (open model, 30 s): 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence).
    # -XX:+UseSerialGC: the user: given; not searched
    # -XX:MaxMetaspaceSize=88m: measured: trials 1-4, 6-22
    # -XX:ReservedCodeCacheSize=48m: calculated: from the limits, by formula
    JAVA_TOOL_OPTIONS=-XX:+UseSerialGC -XX:MaxMetaspaceSize=88m -XX:ReservedCodeCacheSize=48m
    ");
}

#[test]
fn the_dockerfile() {
    insta::assert_snapshot!(text(&search(), "Dockerfile"), @r#"
    # Written by loadline 0.1.0 from result 01936f2a-ffff-7000-8000-000000000001.
    # Keeps p99<50ms,errors<0.1%,start<20s under GET /owners?lastName=Da at 300/s (open model, 30 s): 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence).
    # Run it with the size that was measured: docker run --memory=212m --cpus=1
    # Pin the base image by digest before you ship it.
    ARG BASE=eclipse-temurin:17-jre

    FROM ${BASE}
    WORKDIR /app
    COPY --chmod=0444 jvm.options /app/jvm.options
    COPY --chmod=0444 ["spring-web.jar", "/app/app.jar"]
    # Never root.
    USER 64999:64999
    EXPOSE 8080
    ENTRYPOINT ["java", "@/app/jvm.options", "-jar", "/app/app.jar", "--server.port=8080"]
    "#);
}

#[test]
fn the_dockerfile_with_the_launcher_on_jdk_8() {
    let application = Application {
        launcher: true,
        jdk: 8,
        ..application()
    };
    let artefacts = emit(&fixture::search(), &application).expect("it has a recommendation");
    let dockerfile = text(&artefacts, "Dockerfile");
    let last = dockerfile.lines().last().expect("a line");
    assert_eq!(
        last,
        r#"ENTRYPOINT ["loadline-launch", "--", "java", "-XX:+UseSerialGC", "-XX:MaxMetaspaceSize=88m", "-XX:ReservedCodeCacheSize=48m", "-jar", "/app/app.jar", "--server.port=8080"]"#
    );
}

#[test]
fn the_compose_file() {
    insta::assert_snapshot!(text(&search(), "compose.yaml"), @r#"
    # Written by loadline 0.1.0 from result 01936f2a-ffff-7000-8000-000000000001.
    # Keeps p99<50ms,errors<0.1%,start<20s under GET /owners?lastName=Da at 300/s (open model, 30 s): 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence).
    services:
      spring-web:
        image: "registry.example/spring-web:1.4.2"
        build:
          context: "."
        user: "64999:64999"
        # 197Mi kept the SLO in every confirmation, margin 8 %; trials 1-4, 6-22; 195Mi fails: p99<50ms was measured as 109 ms; garbage collection stopped it 33 % of the time
        mem_limit: "212m"
        # as in the trials: no swap; a JVM that swaps keeps no latency objective
        memswap_limit: "212m"
        # the CPU limit of every trial behind this size; 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence)
        cpus: "1"
        # 2 x the slowest of 8 measured stops (1s), at least 30 s
        stop_grace_period: "30s"
        ports:
          - "8080:8080"
        read_only: true
        # counts towards the memory limit; the JVM writes its performance data here
        tmpfs:
          - "/tmp:size=64m"
        cap_drop:
          - "ALL"
        security_opt:
          - "no-new-privileges:true"
        restart: "unless-stopped"
    "#);
}

#[test]
fn the_manifests() {
    insta::assert_snapshot!(text(&search(), "kubernetes.yaml"), @r#"
    # Written by loadline 0.1.0 from result 01936f2a-ffff-7000-8000-000000000001.
    # Keeps p99<50ms,errors<0.1%,start<20s under GET /owners?lastName=Da at 300/s (open model, 30 s): 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence).
    apiVersion: "apps/v1"
    kind: "Deployment"
    metadata:
      name: "spring-web"
      labels:
        app.kubernetes.io/name: "spring-web"
    spec:
      # as asked for; one pod was measured
      replicas: 2
      selector:
        matchLabels:
          app.kubernetes.io/name: "spring-web"
      template:
        metadata:
          labels:
            app.kubernetes.io/name: "spring-web"
        spec:
          automountServiceAccountToken: false
          enableServiceLinks: false
          # 2 x the slowest of 8 measured stops (1s), at least 30 s
          terminationGracePeriodSeconds: 30
          securityContext:
            runAsNonRoot: true
            runAsUser: 64999
            runAsGroup: 64999
            seccompProfile:
              type: "RuntimeDefault"
          containers:
            - name: "spring-web"
              image: "registry.example/spring-web:1.4.2"
              ports:
                - name: "http"
                  containerPort: 8080
              resources:
                requests:
                  # the limit: memory that is promised must be there
                  memory: "212Mi"
                  # the limit: QoS class Guaranteed; whole CPUs are pinned and never throttled where the kubelet's CPU manager is static
                  cpu: "1"
                limits:
                  # 197Mi kept the SLO in every confirmation, margin 8 %; trials 1-4, 6-22; 195Mi fails: p99<50ms was measured as 109 ms; garbage collection stopped it 33 % of the time
                  memory: "212Mi"
                  # the CPU limit of every trial behind this size; 8 of 8 fresh starts passed: less than 31.2 % fail (95 % confidence)
                  cpu: "1"
              startupProbe:
                httpGet:
                  path: "/health"
                  port: "http"
                periodSeconds: 1
                timeoutSeconds: 2
                # 17 s: 3 x the slowest of 8 measured starts (5.50s)
                failureThreshold: 17
              readinessProbe:
                httpGet:
                  path: "/health"
                  port: "http"
                periodSeconds: 5
                timeoutSeconds: 2
                failureThreshold: 3
              livenessProbe:
                tcpSocket:
                  port: "http"
                periodSeconds: 10
                timeoutSeconds: 5
                # a minute without a connection; a slow answer alone restarts nothing
                failureThreshold: 6
              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities:
                  drop:
                    - "ALL"
              volumeMounts:
                - name: "tmp"
                  mountPath: "/tmp"
          volumes:
            - name: "tmp"
              emptyDir:
                sizeLimit: "64Mi"
    ---
    apiVersion: "v1"
    kind: "Service"
    metadata:
      name: "spring-web"
      labels:
        app.kubernetes.io/name: "spring-web"
    spec:
      selector:
        app.kubernetes.io/name: "spring-web"
      ports:
        - name: "http"
          port: 8080
          targetPort: "http"
    ---
    apiVersion: "policy/v1"
    kind: "PodDisruptionBudget"
    metadata:
      name: "spring-web"
      labels:
        app.kubernetes.io/name: "spring-web"
    spec:
      # a drained node takes one pod at a time
      maxUnavailable: 1
      selector:
        matchLabels:
          app.kubernetes.io/name: "spring-web"
    "#);
}

/// The documents as a second parser reads them.
fn documents(yaml: &str) -> Vec<Value> {
    yaml.split("\n---\n")
        .map(|d| serde_saphyr::from_str(d).expect("it is YAML"))
        .collect()
}

#[test]
fn a_second_parser_reads_the_values_that_were_measured() {
    let artefacts = search();
    let all = documents(&text(&artefacts, "kubernetes.yaml"));
    let kinds: Vec<_> = all
        .iter()
        .map(|d| d["kind"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["Deployment", "Service", "PodDisruptionBudget"]);
    let container = &all[0]["spec"]["template"]["spec"]["containers"][0];
    let resources = &container["resources"];
    assert_eq!(resources["limits"]["memory"], "212Mi");
    assert_eq!(resources["limits"], resources["requests"]);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(
        container["securityContext"]["capabilities"]["drop"][0],
        "ALL"
    );
    let compose = &documents(&text(&artefacts, "compose.yaml"))[0];
    assert_eq!(compose["services"]["spring-web"]["mem_limit"], "212m");
    assert_eq!(compose["services"]["spring-web"]["cpus"], "1");
}

#[test]
fn the_start_probe_waits_three_times_the_slowest_start() {
    let view = fixture::search();
    let size = view
        .recommendation
        .as_ref()
        .expect("a recommendation")
        .memory;
    let at_size = view
        .trials
        .iter()
        .filter(|t| t.configuration.memory == Some(size));
    let slowest = at_size
        .filter_map(|t| t.evidence.start.ready)
        .max()
        .expect("starts");
    let manifests = text(&search(), "kubernetes.yaml");
    let container = &documents(&manifests)[0]["spec"]["template"]["spec"]["containers"][0];
    let probe = &container["startupProbe"];
    let waits = probe["failureThreshold"]
        .as_u64()
        .zip(probe["periodSeconds"].as_u64());
    let waits = waits.map(|(a, b)| a * b).expect("numbers");
    assert_eq!(waits, (slowest.as_secs_f64() * 3.0).ceil() as u64);
}

#[test]
fn one_pod_has_no_disruption_budget() {
    let application = Application {
        replicas: 1,
        ..application()
    };
    let artefacts = emit(&fixture::search(), &application).expect("it has a recommendation");
    assert_eq!(documents(&text(&artefacts, "kubernetes.yaml")).len(), 2);
}

#[test]
fn hostile_records_make_harmless_artefacts() {
    let application = Application {
        name: "\n---\nkind: Evil\n\"".to_owned(),
        image: "a\"\nkind: Evil".to_owned(),
        base_image: "a\nRUN evil".to_owned(),
        jar: "a\nRUN evil".to_owned(),
        ..application()
    };
    let artefacts = emit(&hostile::view(), &application).expect("it has a recommendation");
    for artefact in &artefacts {
        assert!(!artefact.text.contains("hunter2"), "{}", artefact.name);
        for line in artefact.text.lines() {
            assert!(
                !line.starts_with("RUN") && !line.starts_with("kind: Evil"),
                "{line}"
            );
        }
    }
    let all = documents(&text(&artefacts, "kubernetes.yaml"));
    assert_eq!(all.len(), 3);
    let env = &all[0]["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[0]["name"], "DB_PASSWORD");
    assert_eq!(env[0]["valueFrom"]["secretKeyRef"]["key"], "DB_PASSWORD");
}

#[test]
fn what_is_left_out_is_said() {
    let mut view = fixture::search();
    if let Some(recommendation) = &mut view.recommendation {
        let secret = fixture::option("-Ddb.password=hunter2", Provenance::User);
        recommendation.configuration.jvm_options.push(secret);
    }
    let artefacts = emit(&view, &application()).expect("it has a recommendation");
    let options = text(&artefacts, "jvm.options");
    let said = "# Left out, give it at run time: -Ddb.password=[redacted] holds a secret.\n";
    assert!(options.contains(said), "{options}");
    assert!(!options.contains("hunter2"));
}

#[test]
fn a_matrix_has_nothing_to_emit() {
    let error = emit(&fixture::matrix(), &application()).expect_err("no recommendation");
    assert!(matches!(error, EmitError::NoRecommendation { .. }));
    assert!(error.to_string().contains("hint: "));
}
