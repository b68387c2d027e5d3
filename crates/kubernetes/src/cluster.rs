//! Access to a cluster: kubeconfig, context, namespace, client.
//!
//! Owns the async runtime. Credentials come from the kubeconfig; the `kube` crate runs a credential
//! program named there. In a pod without a kubeconfig the service account's are used, and the API
//! server must show a certificate of the cluster's own authority.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, NodeSystemInfo, Pod, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, TypeMeta};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::RunRefusal;
use tokio::runtime::{Builder, Runtime};

use crate::in_cluster::identity::ControllerPod;
use crate::refused;

pub(crate) const ANSWER: Duration = Duration::from_secs(20);

/// Time an API server may be away while trials run: an upgrade restarts it in some seconds, or in
/// minutes.
pub(crate) const AWAY: Duration = Duration::from_secs(300);

const PAUSE: Duration = Duration::from_secs(2);

/// Time the end of a run waits for an absent API server, to leave no objects behind.
const LEAVING: Duration = Duration::from_secs(30);

const IN_CLUSTER: &str = "in-cluster";

/// Objects asked for at once, as kubectl does.
const PAGE: u32 = 500;

pub(crate) struct ConnectedCluster {
    runtime: Runtime,
    pub(crate) access: NamespaceAccess,
    pub(crate) wanted: Wanted,
    pub(crate) inside: Option<ControllerPod>,
    pub(crate) context: String,
    pub(crate) version: String,
    left: RefCell<Vec<String>>,
}

#[derive(Clone)]
pub(crate) struct NamespaceAccess {
    client: Client,
    pub(crate) namespace: String,
    /// Whether the API server may still answer about nodes.
    tells_nodes: Arc<AtomicBool>,
}

impl ConnectedCluster {
    /// Finds the cluster and asks for its version.
    /// Errors: [`RunRefusal`]: no kubeconfig, no such context, no answer.
    pub(crate) fn connect_to(wanted: &Wanted) -> Result<Self, RunRefusal> {
        let runtime = make_runtime()?;
        let (named, namespace) = (wanted.context.as_deref(), wanted.namespace.as_deref());
        let (client, context, namespace) = runtime.block_on(connect_client(named, namespace))?;
        Self::from_client(wanted, runtime, client, (context, namespace))
    }

    #[cfg(test)]
    pub(crate) fn at(wanted: &Wanted, config: Config) -> Result<Self, RunRefusal> {
        let runtime = make_runtime()?;
        let context = "test".to_owned();
        let client = runtime.block_on(async { Client::try_from(config) });
        let client = client.map_err(|error| refused::unreachable(&context, &error))?;
        Self::from_client(wanted, runtime, client, (context, "sizing".to_owned()))
    }

    fn from_client(
        wanted: &Wanted,
        runtime: Runtime,
        client: Client,
        (context, namespace): (String, String),
    ) -> Result<Self, RunRefusal> {
        let asked = runtime.block_on(within_deadline(client.apiserver_version()));
        let version = asked.map_err(|error| refused::unreachable(&context, &error))?;
        Ok(Self {
            runtime,
            access: NamespaceAccess::new(client, namespace),
            wanted: wanted.clone(),
            inside: ControllerPod::of_process(),
            context,
            version: version.git_version,
            left: RefCell::default(),
        })
    }

    pub(crate) fn run<T>(&self, of: impl Future<Output = T>) -> T {
        self.runtime.block_on(of)
    }

    /// Removes Jobs with all their objects, and those left from earlier. Failures are retried with
    /// the next ones, and at the end; then the sweep of the next start finds them.
    pub(crate) fn remove_jobs(&self, jobs: Vec<String>) {
        let mut left = self.left.borrow_mut();
        left.extend(jobs);
        self.run(async {
            while let Some(job) = left.last() {
                match remove_job(&self.access, job).await {
                    Err(error) if refused::is_passing(&error) => break,
                    _ => left.pop(),
                };
            }
        });
    }

    pub(crate) fn spawn(&self, of: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(of);
    }
}

impl Drop for ConnectedCluster {
    fn drop(&mut self) {
        let begin = Instant::now();
        self.remove_jobs(Vec::new());
        while !self.left.borrow().is_empty() && begin.elapsed() < LEAVING {
            std::thread::sleep(PAUSE);
            self.remove_jobs(Vec::new());
        }
    }
}

impl NamespaceAccess {
    pub(crate) fn new(client: Client, namespace: String) -> Self {
        Self {
            client,
            namespace,
            tells_nodes: Arc::new(true.into()),
        }
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn dynamic(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, kind)
    }

    pub(crate) fn events(&self) -> Api<Event> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Node information from the API server, if the user has the right: nodes are cluster-wide
    /// objects, so few have. Not asked again after a refusal.
    pub(crate) async fn node_info(&self, name: &str) -> Option<NodeSystemInfo> {
        if !self.tells_nodes.load(Ordering::Relaxed) {
            return None;
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        match within_deadline(nodes.get(name)).await {
            Ok(node) => node.status?.node_info,
            Err(error) => {
                self.tells_nodes
                    .fetch_and(refused::is_passing(&error), Ordering::Relaxed);
                None
            }
        }
    }
}

pub(crate) async fn within_deadline<T>(
    of: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    match tokio::time::timeout(ANSWER, of).await {
        Ok(answer) => answer,
        Err(_) => {
            let text = format!("no answer within {} s", ANSWER.as_secs());
            Err(kube::Error::Service(text.into()))
        }
    }
}

pub(crate) struct RequestRetries {
    begin: Instant,
}

impl RequestRetries {
    pub(crate) fn from_now() -> Self {
        Self {
            begin: Instant::now(),
        }
    }

    /// Whether to try again after this answer: it is an error that may pass. Waits a little then.
    pub(crate) async fn wait_to_retry<T>(&self, answer: &Result<T, kube::Error>) -> bool {
        let passes = answer.as_ref().is_err_and(refused::is_passing);
        let again = passes && self.begin.elapsed() < AWAY;
        if again {
            tokio::time::sleep(PAUSE).await;
        }
        again
    }
}

/// A request that may be carried out twice, tried for as long as an API server may be away.
pub(crate) async fn retry_request<T, F>(request: impl Fn() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let tries = RequestRetries::from_now();
    loop {
        let answer = within_deadline(request()).await;
        if !tries.wait_to_retry(&answer).await {
            return answer;
        }
    }
}

pub(crate) async fn remove_job(access: &NamespaceAccess, job: &str) -> Result<(), kube::Error> {
    let (jobs, params) = (access.jobs(), DeleteParams::background());
    match within_deadline(jobs.delete(job, &params)).await {
        Err(error) if refused::is_gone(&error) => Ok(()),
        other => other.map(drop),
    }
}

fn make_runtime() -> Result<Runtime, RunRefusal> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| {
        RunRefusal::new(
            "speaking to the cluster",
            error,
            "free some memory and processes",
        )
    })
}

/// All objects of a kind in these namespaces, all without one; a page at a time.
/// Errors: [`RunRefusal`]: no kubeconfig, no such context, no answer, no right to list.
pub(crate) fn list_cluster_objects(
    context: Option<&str>,
    namespaces: &[String],
    kinds: &[ApiResource],
) -> Result<Vec<DynamicObject>, RunRefusal> {
    let runtime = make_runtime()?;
    let (client, context, _) = runtime.block_on(connect_client(context, None))?;
    let mut all = Vec::new();
    for kind in kinds {
        let apis: Vec<Api<DynamicObject>> = match namespaces {
            [] => vec![Api::all_with(client.clone(), kind)],
            names => names
                .iter()
                .map(|name| Api::namespaced_with(client.clone(), name, kind))
                .collect(),
        };
        for api in apis {
            let pages = runtime.block_on(pages(&api));
            let pages = pages.map_err(|error| refused::listing(&context, kind, &error))?;
            // Objects of a list do not say what they are.
            all.extend(pages.into_iter().map(|object| DynamicObject {
                types: Some(TypeMeta {
                    api_version: kind.api_version.clone(),
                    kind: kind.kind.clone(),
                }),
                ..object
            }));
        }
    }
    Ok(all)
}

async fn pages(api: &Api<DynamicObject>) -> Result<Vec<DynamicObject>, kube::Error> {
    let mut all = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = within_deadline(api.list(&params)).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

const FINDING: &str = "finding the cluster";
const NO_KUBECONFIG: &str =
    "kubectl's own settings are used: set KUBECONFIG, or write ~/.kube/config";

async fn connect_client(
    named: Option<&str>,
    namespace: Option<&str>,
) -> Result<(Client, String, String), RunRefusal> {
    let file = match (Kubeconfig::read(), Config::incluster()) {
        (Ok(file), _) => file,
        (Err(_), Ok(config)) => {
            let context = named.unwrap_or(IN_CLUSTER).to_owned();
            return client_from_config(config, context, namespace);
        }
        (Err(error), Err(_)) => {
            return Err(RunRefusal::new(FINDING, error, NO_KUBECONFIG));
        }
    };
    let context = known_context(&file, named)?;
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(file, &options).await;
    let config = config.map_err(|error| {
        let hint = format!("`kubectl --context {context} version` must work first");
        RunRefusal::new(FINDING, error, hint)
    })?;
    client_from_config(config, context, namespace)
}

/// Whether the kubeconfig has this context, without asking the cluster.
/// Errors: [`RunRefusal`]: no kubeconfig, no such context.
pub fn check_context(named: Option<&str>) -> Result<(), RunRefusal> {
    match (Kubeconfig::read(), Config::incluster()) {
        (Ok(file), _) => known_context(&file, named).map(drop),
        (Err(_), Ok(_)) => Ok(()),
        (Err(error), Err(_)) => Err(RunRefusal::new(FINDING, error, NO_KUBECONFIG)),
    }
}

fn known_context(file: &Kubeconfig, named: Option<&str>) -> Result<String, RunRefusal> {
    let named = named.map(str::to_owned);
    let context = named.or(file.current_context.clone()).unwrap_or_default();
    if file.contexts.iter().any(|known| known.name == context) {
        return Ok(context);
    }
    let known: Vec<&str> = file.contexts.iter().map(|c| c.name.as_str()).collect();
    let why = match context.as_str() {
        "" => "the kubeconfig has no current context".to_owned(),
        name => format!("the kubeconfig has no context `{name}`"),
    };
    let hint = if known.is_empty() {
        "it has none at all: is KUBECONFIG the right file?".to_owned()
    } else {
        format!("it has: {}; choose one with --context", known.join(", "))
    };
    Err(RunRefusal::new(FINDING, why, hint))
}

fn client_from_config(
    mut config: Config,
    context: String,
    namespace: Option<&str>,
) -> Result<(Client, String, String), RunRefusal> {
    if let Some(namespace) = namespace {
        namespace.clone_into(&mut config.default_namespace);
    }
    // A trial is followed for as long as it takes.
    config.read_timeout = None;
    let namespace = config.default_namespace.clone();
    let client =
        Client::try_from(config).map_err(|error| refused::unreachable(&context, &error))?;
    Ok((client, context, namespace))
}
