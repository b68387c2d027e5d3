//! The rights that loadline needs in a namespace.
//!
//! Owns the list; a test with a cluster runs with exactly these, and one without compares them with what
//! is asked for.

/// A Role with them, as a manifest.
pub fn role(namespace: &str) -> String {
    format!(
        "\
# What loadline needs to run trials as pods, and nothing else. Bind it to who calls loadline:
#   kubectl -n {namespace} create rolebinding loadline --role=loadline --user=NAME
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: loadline
  namespace: {namespace}
rules:
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, list, patch, delete]
- apiGroups: [\"\"]
  resources: [secrets]
  verbs: [create]
- apiGroups: [\"\"]
  resources: [pods]
  verbs: [watch]
- apiGroups: [\"\"]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [\"\"]
  resources: [events]
  verbs: [list]
# For --from alone.
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get]
# Not needed, and given by who may make a ClusterRole: with it loadline also tells nodes apart by the
# version of their container runtime and their operating system, which no pod sees.
# apiVersion: rbac.authorization.k8s.io/v1
# kind: ClusterRole
# metadata:
#   name: loadline-nodes
# rules:
# - apiGroups: [\"\"]
#   resources: [nodes]
#   verbs: [get]
"
    )
}
