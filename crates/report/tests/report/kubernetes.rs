//! Manifests against the schema of the Kubernetes API, as a server checks them with strict
//! validation: every field known, every type right, every required field there.
//!
//! The schema is a part of Kubernetes' own (`data/kubernetes-1.34.4.json` says which). What a schema
//! cannot say (quantities, names, requests within limits) is checked here by the API's rules.

use std::sync::LazyLock;

use loadline_analysis::record::MetricEvidence;
use loadline_report::ResultView;
use loadline_report::emit::{
    AutoscalerNeeds, EmitError, EmitPurpose, ProductionApplication, ReadinessCheck, emit,
};
use serde_json::Value;

use crate::artefacts::{application, documents, text};
use crate::{fixture, hostile};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("data/kubernetes-1.34.4.json")).expect("it is JSON")
});

pub fn errors(document: &Value) -> Vec<String> {
    let word = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
    let kind = format!("{} {}", word("apiVersion"), word("kind"));
    let mut found = Vec::new();
    match SCHEMA["roots"][&kind].as_str() {
        Some(root) => check(document, &SCHEMA["schemas"][root], &kind, &mut found),
        None => found.push(format!("unknown kind {kind}")),
    }
    found
}

fn check(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let target = &SCHEMA["schemas"][name];
        assert!(target.is_object(), "the stored schema lacks {name}");
        if name.ends_with(".Quantity") && !is_quantity(value) {
            found.push(format!("{at}: {value} is no quantity"));
        }
        return check(value, target, at, found);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(value, part, at, found);
    }
    if let Some(any) = schema["oneOf"].as_array() {
        let fits = any.iter().any(|one| fits_type(value, &one["type"]));
        if !fits {
            found.push(format!("{at}: {value} does not fit {any:?}"));
        }
    }
    if !schema["type"].is_null() && !fits_type(value, &schema["type"]) {
        found.push(format!("{at}: {value} is no {}", schema["type"]));
        return;
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        found.push(format!("{at}: {value} is not in {values:?}"));
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        check(item, &schema["items"], &format!("{at}[{i}]"), found);
    }
    check_fields(value, schema, at, found);
}

fn check_fields(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    let Some(fields) = value.as_object() else {
        return;
    };
    if !schema["properties"].is_object() && !schema["additionalProperties"].is_object() {
        return;
    }
    for (name, field) in fields {
        let at = format!("{at}.{name}");
        match schema["properties"].get(name) {
            Some(known) => check(field, known, &at, found),
            None if schema["additionalProperties"].is_object() => {
                check(field, &schema["additionalProperties"], &at, found);
            }
            None => found.push(format!("{at}: unknown field")),
        }
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(required.as_str().unwrap_or_default()) {
            found.push(format!("{at}: {required} is missing"));
        }
    }
}

fn fits_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    }
}

/// Source: apimachinery, `resource.Quantity`: digits, then one of its suffixes.
fn is_quantity(value: &Value) -> bool {
    let text = value.as_str().map(str::to_owned);
    let text = text.unwrap_or_else(|| value.to_string());
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let suffixes = ["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti"];
    number.parse::<f64>().is_ok() && suffixes.contains(&suffix)
}

fn manifests(view: &ResultView, application: &ProductionApplication) -> Vec<Value> {
    let artefacts = emit(view, application, &[EmitPurpose::Kubernetes]);
    documents(&text(
        &artefacts.expect("a recommendation"),
        "kubernetes.yaml",
    ))
}

/// What no schema says, by the rules of the API server.
fn check_rules(all: &[Value]) {
    let deployment = &all[0];
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    for document in all {
        let name = document["metadata"]["name"].as_str().expect("a name");
        let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.len() <= 63 && name.chars().all(is_label), "{name}");
    }
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for port in container["ports"].as_array().into_iter().flatten() {
        assert!(port["name"].as_str().is_some_and(|name| name.len() <= 15));
        assert!(
            port["containerPort"]
                .as_u64()
                .is_some_and(|p| (1..65_536).contains(&p))
        );
    }
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let period = container[probe]["periodSeconds"].as_u64();
        assert!(period.is_some_and(|seconds| seconds >= 1), "{probe}");
        let tries = container[probe]["failureThreshold"].as_u64();
        assert!(tries.is_some_and(|tries| tries >= 1), "{probe}");
    }
}

#[test]
fn every_manifest_is_what_the_api_takes() {
    let scaled = ProductionApplication {
        scaling: Some(AutoscalerNeeds {
            max_rate: Some(240),
            is_measured: false,
            max_replicas: 6,
        }),
        ready: Some(ReadinessCheck::Http {
            port: 8081,
            path: "/actuator/health".to_owned(),
        }),
        ..application()
    };
    let by_connection = ProductionApplication {
        ready: Some(ReadinessCheck::Tcp { port: 8080 }),
        replicas: 1,
        ..application()
    };
    let by_grpc = ProductionApplication {
        ready: Some(ReadinessCheck::Grpc { port: 9090 }),
        ..application()
    };
    let asked = manifests(&fixture::search(), &by_grpc)[0].to_string();
    assert!(asked.contains(r#""grpc":{"port":9090}"#), "{asked}");
    for (application, kinds) in [
        (application(), 3),
        (scaled, 4),
        (by_connection, 2),
        (by_grpc, 3),
    ] {
        let all = manifests(&fixture::search(), &application);
        assert_eq!(all.len(), kinds);
        for document in &all {
            assert_eq!(errors(document), Vec::<String>::new(), "{document}");
        }
        check_rules(&all);
    }
}

#[test]
fn hostile_names_make_valid_manifests() {
    let application = ProductionApplication {
        name: "\n---\nkind: Evil\n\"".to_owned(),
        image: "a\"\nkind: Evil".to_owned(),
        ..application()
    };
    let all = manifests(&hostile::view(), &application);
    for document in &all {
        assert_eq!(errors(document), Vec::<String>::new(), "{document}");
    }
    check_rules(&all);
}

#[test]
fn an_autoscaler_asks_for_less_than_a_pod_can_carry() {
    let application = ProductionApplication {
        scaling: Some(AutoscalerNeeds {
            max_rate: Some(240),
            is_measured: false,
            max_replicas: 6,
        }),
        ..application()
    };
    let all = manifests(&fixture::search(), &application);
    let scaler = all.iter().find(|d| d["kind"] == "HorizontalPodAutoscaler");
    let spec = &scaler.expect("it was asked for")["spec"];
    assert_eq!(spec["metrics"][0]["pods"]["target"]["averageValue"], "200");
    assert_eq!(spec["minReplicas"], 2);
    assert_eq!(spec["maxReplicas"], 6);
    assert!(
        all[0]["spec"].get("replicas").is_none(),
        "the scaler owns it"
    );
}

#[test]
fn the_check_itself_finds_what_is_wrong() {
    let mut deployment = manifests(&fixture::search(), &application()).remove(0);
    let spec = &mut deployment["spec"];
    spec["replicas"] = "two".into();
    spec["replica"] = 2.into();
    let container = &mut spec["template"]["spec"]["containers"][0];
    container["resources"]["limits"]["memory"] = "212 MB".into();
    let fields = container.as_object_mut().expect("a map");
    fields.remove("name");
    let found = errors(&deployment).join("\n");
    for wanted in [
        "replicas: \"two\" is no \"integer\"",
        "replica: unknown field",
        "\"212 MB\" is no quantity",
        "\"name\" is missing",
    ] {
        assert!(found.contains(wanted), "{wanted} not in:\n{found}");
    }
}

/// What scales and probes a consumer: its metrics, on a port that takes no requests.
#[test]
fn a_consumer_is_a_deployment_alone_and_keda_compares_its_metrics() {
    let mut view = fixture::search();
    view.slo = "lag: max<1000, done: rate>=100/s".parse().expect("an SLO");
    for trial in &mut view.trials {
        trial.evidence.metrics = vec![MetricEvidence {
            name: "done".to_owned(),
            values: vec![Some(0.0), Some(210.0), Some(400.0)],
            last_failure: None,
        }];
    }
    let series = |text: &str| text.parse().expect("a selector");
    let consumer = ProductionApplication {
        port: None,
        ready: Some(ReadinessCheck::Tcp { port: 9505 }),
        series: [
            ("lag".to_owned(), series("records_lag{topic=\"orders\"}")),
            ("done".to_owned(), series("done_total")),
        ]
        .into(),
        scaling: Some(AutoscalerNeeds {
            max_rate: None,
            is_measured: true,
            max_replicas: 6,
        }),
        ..application()
    };
    let silent = ProductionApplication {
        ready: None,
        replicas: 1,
        ..consumer.clone()
    };
    for (application, kinds, probe) in [(&consumer, 2, "ready"), (&silent, 1, "")] {
        let all = manifests(&view, application);
        assert_eq!(all.len(), kinds, "no Service and no autoscaler");
        for document in &all {
            assert_eq!(errors(document), Vec::<String>::new(), "{document}");
        }
        let container = &all[0]["spec"]["template"]["spec"]["containers"][0];
        let port = &container["livenessProbe"]["tcpSocket"]["port"];
        assert_eq!(port.as_str().unwrap_or_default(), probe);
    }
    let keda = emit(&view, &consumer, &[EmitPurpose::Keda]).expect("it has triggers");
    let keda = text(&keda, "keda.yaml");
    let triggers = keda.split("maxReplicaCount").nth(1).expect("a number");
    insta::assert_snapshot!(triggers, @r#"
    : 6
      triggers:
        - type: prometheus
          metricType: AverageValue
          metadata:
            # where your Prometheus is
            serverAddress: http://prometheus-operated.monitoring.svc:9090
            # of all pods
            query: "sum(records_lag{topic=\"orders\",pod=~\"spring-web-[a-z0-9]+-[a-z0-9]{5}\"})"
            # 83.7 % of the bound that one pod kept, lag: max<1000: until another helps
            threshold: "837.498"
        - type: prometheus
          metricType: AverageValue
          metadata:
            # where your Prometheus is
            serverAddress: http://prometheus-operated.monitoring.svc:9090
            # a second, of all pods
            query: "sum(rate(done_total{pod=~\"spring-web-[a-z0-9]+-[a-z0-9]{5}\"}[1m]))"
            # 83.7 % of the 200/s that one pod worked off at least: until another helps
            threshold: "167.5"
    "#);
    let unnamed = ProductionApplication {
        series: [].into(),
        ..consumer
    };
    assert_eq!(
        emit(&view, &unnamed, &[EmitPurpose::Keda]),
        Err(EmitError::NoTrigger)
    );
}
