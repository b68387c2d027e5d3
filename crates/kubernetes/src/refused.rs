//! What the API server says of a request, in three parts: what, why, what next.
//!
//! Owns the reading of its answers. Facts: the server's own texts (apiserver's `forbidden`, the
//! admission plugins ResourceQuota and PodSecurity), as Kubernetes 1.34 gave them.

use kube::Error;
use kube::api::ApiResource;
use loadline_protocol::RunRefusal;

/// Nobody answered, or not as an API server does.
pub(crate) fn unreachable(context: &str, error: &Error) -> RunRefusal {
    if let Error::Api(status) = error {
        return server_refusal("asking the API server", &status.message, status.code);
    }
    let hint =
        format!("`kubectl --context {context} version` must work first; is it the right context?");
    RunRefusal::new(
        format!("the cluster of context {context}"),
        causes(error),
        hint,
    )
}

pub(crate) fn listing(context: &str, kind: &ApiResource, error: &Error) -> RunRefusal {
    let what = format!(
        "listing {} in the cluster of context {context}",
        kind.plural
    );
    match error {
        Error::Api(status) if status.code == 403 => RunRefusal::new(
            what,
            &status.message,
            "it needs the verb list on deployments and statefulsets of the group apps; if you \
             have it in one namespace only, name that: --namespace NAME",
        ),
        Error::Api(_) => request_refusal(&what, error),
        other => unreachable(context, other),
    }
}

pub(crate) fn request_refusal(what: &str, error: &Error) -> RunRefusal {
    match error {
        Error::Api(status) => server_refusal(what, &status.message, status.code),
        other => {
            let hint = "is the cluster there? `kubectl get pods` must work; then: loadline resume";
            RunRefusal::new(what, causes(other), hint)
        }
    }
}

pub(crate) fn is_passing(error: &Error) -> bool {
    match error {
        Error::Api(status) => matches!(status.code, 429 | 500 | 502 | 503 | 504),
        Error::Service(_) | Error::HyperError(_) | Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// Whether a kubelet's message about a pod that does not begin lasts until the node changes.
/// containerd's words, and CRI-O's.
pub(crate) fn never_passes(message: &str) -> bool {
    message.contains("no runtime for") || message.contains("find runtime handler")
}

pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

pub(crate) fn is_there(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

pub(crate) fn server_refusal(what: &str, message: &str, code: u16) -> RunRefusal {
    let hint = if message.contains("exceeded quota") || message.contains("failed quota") {
        "the namespace's ResourceQuota has no room for the application and loadline's own container (1 CPU, 256Mi, more for a large load): kubectl describe quota; a larger quota, smaller sizes or another --namespace"
    } else if message.contains("violates PodSecurity") {
        "loadline's own pods keep the `restricted` profile: a webhook or a default added the refused part, for example one of the namespace"
    } else if message.contains("error looking up service account") {
        "loadline in a cluster has its own service account, which `loadline emit --rbac NAMESPACE` prints: loadline emit --rbac NAMESPACE | kubectl apply -f -"
    } else if message.contains("maximum cpu usage") || message.contains("maximum memory usage") {
        "a LimitRange of the namespace forbids this size, or that of loadline's own container (1 CPU, or --trial-cpu, and 256Mi, more for a large load): kubectl describe limitrange; stay within it, or use another --namespace"
    } else if never_passes(message) {
        "the node lacks the handler of this RuntimeClass: choose nodes that have it with --node-selector, or another --runtime-class"
    } else if message.contains("MountVolume") || message.contains("FailedMount") {
        "the workload of --from mounts a missing object: kubectl get configmaps,secrets in the namespace"
    } else if message.contains("RuntimeClass") {
        "name an existing one with --runtime-class: kubectl get runtimeclasses"
    } else if message.contains("cannot ") && code == 403 {
        "`loadline emit --rbac` prints the Role that loadline needs; an administrator grants it: loadline emit --rbac | kubectl apply -f -"
    } else if code == 401 {
        "the cluster rejects the kubeconfig's credentials: log in again"
    } else if code == 404 && message.contains("namespaces") {
        "name an existing one with --namespace: kubectl get namespaces"
    } else if message.contains("admission webhook") {
        "a webhook of the cluster refuses the pod: ask its owner, or choose a namespace that it ignores with --namespace"
    } else {
        "`kubectl get events` in the namespace shows more"
    };
    RunRefusal::new(what, message, hint)
}

/// An error with its causes: the outermost alone says `client error (Connect)`.
fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

pub(crate) fn no_image() -> RunRefusal {
    let hint = "build an image and name it: --image registry/name:tag";
    RunRefusal::new(
        "--kubernetes",
        "a cluster runs images, not commands of this machine",
        hint,
    )
}

pub(crate) fn defect_refusal(what: &str, error: impl ToString) -> RunRefusal {
    let hint = "this is a defect of loadline: please report it";
    RunRefusal::new(what, error, hint)
}

pub(crate) fn parse_json_value<T: serde::de::DeserializeOwned>(
    json: serde_json::Value,
) -> Result<T, RunRefusal> {
    serde_json::from_value(json)
        .map_err(|error| defect_refusal("writing the manifest of a trial", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_does_not_answer_in_time_is_told_with_what_to_do() {
        let silent = Error::Service("no answer within 20 s".into());
        assert!(is_passing(&silent));
        let refusal = request_refusal("making the Job of a trial", &silent);
        insta::assert_snapshot!(refusal, @"making the Job of a trial: ServiceError: no answer within 20 s");
        assert!(refusal.hint.contains("loadline resume"), "{refusal:?}");
        let refusal = unreachable("prod", &silent);
        insta::assert_snapshot!(refusal, @"the cluster of context prod: ServiceError: no answer within 20 s");
        assert!(refusal.hint.contains("--context prod"), "{refusal:?}");
    }

    #[test]
    fn each_cause_has_its_own_way_out() {
        let hint = |message: &str, code| server_refusal("making the Job", message, code).hint;
        let rights = r#"jobs.batch is forbidden: User "dev" cannot create resource "jobs" in API group "batch" in the namespace "x""#;
        assert!(hint(rights, 403).contains("emit --rbac"));
        let quota = r#"pods "t" is forbidden: exceeded quota: small, requested: limits.cpu=2, used: limits.cpu=0, limited: limits.cpu=1"#;
        assert!(hint(quota, 403).contains("ResourceQuota"));
        let security = r#"pods "t" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true"#;
        assert!(hint(security, 403).contains("restricted"));
        assert!(hint("Unauthorized", 401).contains("log in"));
        let class = r#"pods "t" is forbidden: pod rejected: RuntimeClass "gvisor" not found"#;
        assert!(hint(class, 403).contains("--runtime-class"));
        let handler = r#"Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "gvisor" is configured"#;
        assert!(hint(handler, 0).contains("--node-selector"));
        let range =
            r#"pods "t" is forbidden: maximum cpu usage per Container is 400m, but limit is 500m"#;
        assert!(hint(range, 403).contains("LimitRange"));
        let space = r#"namespaces "y" not found"#;
        assert!(hint(space, 404).contains("--namespace"));
        let hook = r#"admission webhook "policy.example.com" denied the request"#;
        assert!(hint(hook, 400).contains("webhook"));
    }
}
