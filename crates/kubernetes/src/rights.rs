//! The rights that loadline needs in a namespace.
//!
//! Owns the list; a test with a cluster runs with exactly these, and one without compares them with
//! the requests.

use crate::in_cluster::job::ACCOUNT;

/// A Role with them, and the service account that has it where loadline works there itself; as a manifest.
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
# For --in-cluster alone: what is finished is kept there.
- apiGroups: [\"\"]
  resources: [configmaps]
  verbs: [create, list]
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
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get]
---
# For --in-cluster alone: loadline itself works there, with no more rights.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {ACCOUNT}
  namespace: {namespace}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {ACCOUNT}-in-cluster
  namespace: {namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: loadline
subjects:
- kind: ServiceAccount
  name: {ACCOUNT}
  namespace: {namespace}
---
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
