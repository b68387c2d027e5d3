//! What tests of this crate begin with: an order of a trial as a pod.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use kube::{Client, Config};
use loadline_analysis::record::Configuration;
use loadline_experiment::{ClusterSettings, Slots, TrialCpu};
use loadline_protocol::{
    Account, AppSpec, ContainerEngine, EngineKind, ImageSpec, NetworkMode, Readiness, SamplingRate,
    TrialOrder,
};
use loadline_sizing::Bytes;

use crate::cluster::NamespaceAccess;
use crate::look::NodeInspector;
use crate::sweep;

pub(crate) fn test_cluster() -> ClusterSettings {
    let node_selector = [("pool".to_owned(), "sizing".to_owned())];
    ClusterSettings {
        context: None,
        namespace: None,
        trial_image: "registry.example/loadline:1".to_owned(),
        trial_cpu: TrialCpu::default(),
        node_selector: node_selector.into(),
        runtime_class: None,
        from: None,
        slots: Slots::default(),
        share_nodes: NonZeroU32::MIN,
        generators: None,
    }
}

pub(crate) fn test_inspector() -> NodeInspector {
    // A client that sends nothing needs a runtime to be made.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let nobody = "http://127.0.0.1:1".parse().expect("an address");
    let client = runtime.block_on(async { Client::try_from(Config::new(nobody)) });
    NodeInspector {
        access: NamespaceAccess::new(client.expect("a client"), "sizing".to_owned()),
        wanted: test_cluster(),
        image: "orders:1".to_owned(),
        account: test_order().account,
        maker: sweep::maker_identity(None),
        template: None,
        memory: Bytes::from_mib(256),
    }
}

pub(crate) fn test_order() -> TrialOrder {
    let env: BTreeMap<String, String> = [("A", "$(B)"), ("PASSWORD", "hunter2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let image = ImageSpec {
        engine: ContainerEngine {
            kind: EngineKind::Kubernetes,
            program: "kubernetes".into(),
            env: BTreeMap::new(),
            apart: None,
        },
        id: "registry.example/orders@sha256:00".to_owned(),
        command: Vec::new(),
        entrypoint: None,
        args: vec!["serve".to_owned()],
        volumes: Vec::new(),
        env,
        options: Vec::new(),
        user: None,
        stop_signal: None,
        layers: Vec::new(),
        writable: None,
    };
    TrialOrder {
        trial: "t-1".to_owned(),
        configuration: Configuration {
            cpu: "500m".parse().ok(),
            memory: "200Mi".parse().ok(),
            ..Configuration::default()
        },
        app: AppSpec::Image(Box::new(image)),
        dependencies: Vec::new(),
        kept: None,
        stubs: Vec::new(),
        secrets: vec!["hunter2".to_owned()],
        readiness: Readiness::Tcp { port: 8080 },
        network: NetworkMode::Own,
        account: Account {
            uid: 64_999,
            gid: 64_999,
        },
        scratch: "/scratch".into(),
        hidden: Vec::new(),
        gc_log: None,
        log_line: None,
        hand_over: Vec::new(),
        sampling: SamplingRate::Period,
        start_deadline: Duration::from_secs(60),
        load: Vec::new(),
        give_up: None,
        stop_grace: Duration::from_secs(3),
        soak: None,
        memory_study: None,
        as_shipped: false,
        generators: None,
        load_command: None,
        backlog: None,
        metrics: None,
        run: None,
    }
}
