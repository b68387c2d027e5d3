//! Which trials run on which nodes.
//!
//! Owns the rule: a slot gets a node that was looked at and is of the kind of the first one, and keeps
//! it, so that starts that are compared run on one node; a node holds one trial at a time, or as many
//! as the user lets it share; a node of another kind is not used. The scheduler chooses, and where it
//! finds no room a trial waits until another of this run has ended. Never lists the cluster's nodes:
//! that needs a right that people have not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_analysis::record::TrialNode;
use serde_json::{Value, json};

use crate::labels::{RESULT, SHARE, SLOT};

#[derive(Debug, Clone)]
pub(crate) struct NodeRegistry {
    run: String,
    share: usize,
    known: Arc<Mutex<KnownNodes>>,
}

#[derive(Debug, Default)]
struct KnownNodes {
    of_slot: BTreeMap<usize, String>,
    busy: BTreeSet<usize>,
    looked: BTreeMap<String, TrialNode>,
    unlike: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlacement {
    pub slot: String,
    /// Its index among pods that share a node, as a label.
    pub share: String,
    /// The only node, where its slot has one.
    pub node: Option<String>,
    pub taken: Vec<String>,
    pub unlike: Vec<String>,
}

/// A trial that has its node, until its pod is gone. While it lives others may wait for room.
pub(crate) struct OccupiedNode {
    nodes: NodeRegistry,
    slot: usize,
}

impl NodeRegistry {
    pub(crate) fn new(run: String, share: usize) -> Self {
        Self {
            run,
            share: share.max(1),
            known: Arc::default(),
        }
    }

    pub(crate) fn placement_for_slot(&self, slot: usize) -> PodPlacement {
        let known = self.lock_known();
        let node = known.of_slot.get(&slot).cloned();
        let of_others = known.of_slot.iter().filter(|(other, _)| {
            node.is_none() && **other != slot && **other % self.share == slot % self.share
        });
        PodPlacement {
            slot: format!("{}-{slot}", self.run),
            share: (slot % self.share).to_string(),
            taken: of_others.map(|(_, node)| node.clone()).collect(),
            unlike: known.unlike.iter().cloned().collect(),
            node,
        }
    }

    pub(crate) fn slot_nodes(&self) -> Vec<String> {
        let all: BTreeSet<String> = self.lock_known().of_slot.values().cloned().collect();
        all.into_iter().collect()
    }

    pub(crate) fn assign_node(&self, slot: usize, node: TrialNode) {
        let mut known = self.lock_known();
        known.of_slot.insert(slot, node.name.clone());
        known.looked.insert(node.name.clone(), node);
    }

    pub(crate) fn inspected_node(&self, name: &str) -> Option<TrialNode> {
        self.lock_known().looked.get(name).cloned()
    }

    pub(crate) fn occupy(&self, slot: usize) -> OccupiedNode {
        self.lock_known().busy.insert(slot);
        OccupiedNode {
            nodes: self.clone(),
            slot,
        }
    }

    pub(crate) fn is_busy(&self, slot: usize) -> bool {
        self.lock_known().busy.contains(&slot)
    }

    /// Do not rely on the node of a slot: its trial was lost.
    pub(crate) fn leave_node(&self, slot: usize) {
        self.lock_known().of_slot.remove(&slot);
    }

    /// A node is not of the kind of the first one, or not fit to measure on.
    pub(crate) fn avoid(&self, slot: usize, node: &str) {
        self.lock_known().unlike.insert(node.to_owned());
        self.leave_node(slot);
    }

    pub(crate) fn is_any_occupied(&self) -> bool {
        !self.lock_known().busy.is_empty()
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownNodes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OccupiedNode {
    fn drop(&mut self) {
        self.nodes.lock_known().busy.remove(&self.slot);
    }
}

impl PodPlacement {
    pub fn labels(&self) -> [(&'static str, &str); 2] {
        [(SLOT, &self.slot), (SHARE, &self.share)]
    }

    pub fn without_taken_nodes(mut self) -> Self {
        self.unlike.append(&mut self.taken);
        self
    }

    /// The affinity of its pod. Two pods of one slot never run at once, so no rule separates them;
    /// otherwise a pod with an unnoticed end would block its node.
    pub fn affinity(&self) -> Value {
        let apart = json!([{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchExpressions": [
                { "key": SHARE, "operator": "In", "values": [self.share] },
                { "key": SLOT, "operator": "NotIn", "values": [self.slot] },
            ] },
        }]);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        // loadline itself, where it works in the cluster: it is small, and still noise.
        let controllers = json!([{ "weight": 10, "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchExpressions": [{ "key": RESULT, "operator": "Exists" }] },
        } }]);
        let mut affinity =
            json!({ "podAntiAffinity": { required: apart, preferred: controllers } });
        let field = |operator: &str, node: &String| json!({ "key": "metadata.name", "operator": operator, "values": [node] });
        let only = self.node.iter().map(|node| field("In", node));
        let never = self.unlike.iter().map(|node| field("NotIn", node));
        let fields: Vec<Value> = only.chain(never).collect();
        if !fields.is_empty() {
            let terms = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
            affinity["nodeAffinity"][required] = terms;
        }
        let others: Vec<Value> = self.taken.iter().map(|node| field("NotIn", node)).collect();
        if !others.is_empty() {
            let rather = json!([{ "weight": 100, "preference": { "matchFields": others } }]);
            affinity["nodeAffinity"][preferred] = rather;
        }
        affinity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Affinity, NodeSelectorTerm};

    fn nodes(share: usize) -> NodeRegistry {
        NodeRegistry::new("r".to_owned(), share)
    }

    fn node(name: &str) -> TrialNode {
        TrialNode {
            name: name.to_owned(),
            ..TrialNode::default()
        }
    }

    #[test]
    fn a_slot_keeps_its_node_until_the_node_is_lost_or_unlike() {
        let nodes = nodes(1);
        assert_eq!(nodes.placement_for_slot(0).node, None);
        nodes.assign_node(0, node("a"));
        assert_eq!(nodes.placement_for_slot(0).node.as_deref(), Some("a"));
        assert_eq!(nodes.inspected_node("a"), Some(node("a")));
        assert_eq!(nodes.placement_for_slot(1).node, None);
        nodes.leave_node(0);
        assert_eq!(nodes.placement_for_slot(0).node, None);
        nodes.avoid(1, "b");
        assert_eq!(nodes.placement_for_slot(0).unlike, ["b"]);
    }

    #[test]
    fn a_slot_is_busy_until_its_pod_is_gone() {
        let nodes = nodes(1);
        let first = nodes.occupy(0);
        assert!(nodes.is_busy(0) && !nodes.is_busy(1) && nodes.is_any_occupied());
        drop(first);
        assert!(!nodes.is_busy(0) && !nodes.is_any_occupied());
    }

    #[test]
    fn a_slot_without_a_node_rather_takes_one_that_no_other_has() {
        let nodes = nodes(2);
        nodes.assign_node(0, node("a"));
        nodes.assign_node(1, node("b"));
        // 0 and 2 never share a node; 2 and 1 may.
        assert_eq!(nodes.placement_for_slot(2).taken, ["a"]);
        nodes.assign_node(2, node("c"));
        assert_eq!(nodes.placement_for_slot(2).taken, [""; 0]);
    }

    #[test]
    fn as_many_share_a_node_as_may() {
        let share = |share| [0, 1, 2, 3].map(|slot| nodes(share).placement_for_slot(slot).share);
        assert_eq!(share(1), ["0", "0", "0", "0"]);
        assert_eq!(share(2), ["0", "1", "0", "1"]);
    }

    fn fields(term: &NodeSelectorTerm) -> Vec<(String, Vec<String>)> {
        let all = term.match_fields.iter().flatten();
        all.map(|field| {
            let values = field.values.clone().unwrap_or_default();
            (field.operator.clone(), values)
        })
        .collect()
    }

    #[test]
    fn the_api_knows_its_affinity() {
        let place = |node: Option<&str>| PodPlacement {
            slot: "r-1".to_owned(),
            share: "0".to_owned(),
            node: node.map(str::to_owned),
            taken: node.is_none().then(|| "d".to_owned()).into_iter().collect(),
            unlike: vec!["b".to_owned(), "c".to_owned()],
        };
        let affinity = |node: Option<&str>| {
            let affinity = serde_json::from_value(place(node).affinity());
            let affinity: Affinity = affinity.expect("it is known");
            affinity.node_affinity.expect("it has one")
        };
        let must = |node: Option<&str>| {
            let required = affinity(node).required_during_scheduling_ignored_during_execution;
            fields(&required.expect("it has some").node_selector_terms[0])
        };
        let field = |operator: &str, name: &str| (operator.to_owned(), vec![name.to_owned()]);
        // The API server takes one value in each, and all must hold.
        let never = [field("NotIn", "b"), field("NotIn", "c")];
        assert_eq!(must(None), never);
        assert_eq!(must(Some("a"))[0], field("In", "a"));
        assert_eq!(must(Some("a"))[1..], never);
        let rather = |node: Option<&str>| {
            let preferred = affinity(node).preferred_during_scheduling_ignored_during_execution;
            let terms = preferred.unwrap_or_default();
            terms
                .iter()
                .flat_map(|term| fields(&term.preference))
                .collect::<Vec<_>>()
        };
        assert_eq!(rather(None), [field("NotIn", "d")]);
        assert_eq!(rather(Some("a")), []);
    }
}
