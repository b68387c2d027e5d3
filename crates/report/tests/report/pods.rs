//! The artefacts of a deployment of several pods: their rate, autoscaler and disruption budget.

use loadline_report::emit::{AutoscalerNeeds, ProductionApplication};
use loadline_report::{LoadWords, ResultView};

use crate::artefacts::{all, application, documents, text};
use crate::{drawings, fixture};

/// The cheapest deployment of the drawings with a load in the words of the program.
fn cheapest() -> ResultView {
    let mut view = drawings::cheapest();
    view.load = LoadWords {
        before: "GET /owners, open model, ".to_owned(),
        rate_per_second: Some(900.0),
        after: " for 20 s, 32 connections".to_owned(),
    };
    let recommendation = view.recommendation.as_mut().expect("it has one");
    recommendation.configuration.rate = Some(450.0);
    for trial in &mut view.trials {
        trial.configuration.rate = Some(450.0);
    }
    view
}

#[test]
fn a_deployment_says_what_one_pod_was_measured_at() {
    let artefacts = all(&cheapest(), &application()).expect("it has a recommendation");
    for artefact in &artefacts {
        let text = &artefact.text;
        let load = "under GET /owners, open model, 450/s for 20 s, 32 connections";
        assert!(text.contains(load), "{text}");
        assert!(!text.contains("every confirmation"), "{text}");
    }
    let compose = text(&artefacts, "compose.yaml");
    let part =
        "# This starts one of the 2 containers that carry 900/s together; it is good for 450/s.";
    assert!(compose.contains(part), "{compose}");
    assert!(
        compose.contains("# a size that fargate sells; 0 of 8 fresh starts failed"),
        "{compose}"
    );
}

#[test]
fn the_autoscaler_asks_for_no_more_pods_than_the_answer_has() {
    let scaled = |is_measured| {
        let application = ProductionApplication {
            scaling: Some(AutoscalerNeeds {
                max_rate: Some(450),
                is_measured,
                max_replicas: 8,
            }),
            ..application()
        };
        let artefacts = all(&cheapest(), &application).expect("it has a recommendation");
        text(&artefacts, "kubernetes.yaml")
    };
    let measured = scaled(true);
    assert!(measured.contains("averageValue: \"450\""), "{measured}");
    assert!(measured.contains("# 900/s over 2 pods"), "{measured}");
    let given = scaled(false);
    assert!(given.contains("averageValue: \"376\""), "{given}");
}

#[test]
fn the_budget_says_whether_the_others_carry_the_rate() {
    let budget = |replicas, headroom| {
        let mut view = cheapest();
        let recommendation = view.recommendation.as_mut().expect("it has one");
        let deployment = recommendation.deployment.as_mut().expect("it has one");
        deployment.headroom = headroom;
        let application = ProductionApplication {
            replicas,
            ..application()
        };
        let artefacts = all(&view, &application).expect("it has a recommendation");
        text(&artefacts, "evidence.md")
    };
    for (replicas, headroom, said) in [
        (2, 0.0, "the others then get more than the 450/s each"),
        (3, 0.0, "the others carry the 900/s meanwhile"),
        (3, 0.2, "the 900/s meanwhile, with less than its headroom"),
        (4, 0.2, "the 900/s with its headroom (20 %) meanwhile"),
    ] {
        let manifests = budget(replicas, headroom);
        assert!(manifests.contains(said), "{replicas}: {manifests}");
    }
}

#[test]
fn the_cheapest_deployment_brings_its_pods() {
    let view = drawings::cheapest();
    let artefacts = all(&view, &application()).expect("it has a recommendation");
    let manifests = text(&artefacts, "kubernetes.yaml");
    let why =
        "together they carry 900/s as the cheapest deployment; each was measured alone at 450/s";
    assert!(manifests.contains(why), "{manifests}");
    let other = ProductionApplication {
        replicas: 3,
        ..application()
    };
    let artefacts = all(&view, &other).expect("it has a recommendation");
    let manifests = text(&artefacts, "kubernetes.yaml");
    assert!(
        manifests.contains("as asked for; one instance was measured"),
        "{manifests}"
    );
}

#[test]
fn one_pod_has_no_disruption_budget() {
    let application = ProductionApplication {
        replicas: 1,
        ..application()
    };
    let artefacts = all(&fixture::search(), &application).expect("it has a recommendation");
    assert_eq!(documents(&text(&artefacts, "kubernetes.yaml")).len(), 2);
}
