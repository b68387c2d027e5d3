//! Which trials run on which nodes.
//!
//! Owns the rule: a slot keeps the node that its first trial got, so that starts that are compared run
//! on one node; a node holds one trial at a time, or as many as the user lets it share; a node unlike
//! the one that was looked at is not used again. The scheduler chooses, and where it finds no room a
//! trial waits until another of this run has ended. Never asks the cluster for its nodes: that needs a
//! right that people have not.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The label of a pod with its run and slot.
pub const SLOT: &str = "loadline.dev/slot";

/// The label of a pod with its place among those that share a node.
pub const SHARE: &str = "loadline.dev/share";

/// The nodes of a run, as its trials learn of them.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    run: String,
    share: usize,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    of_slot: Vec<Option<String>>,
    unlike: BTreeSet<String>,
    running: usize,
}

/// Where a pod may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its run and slot, as a label.
    pub slot: String,
    /// Its place among those that share a node, as a label.
    pub share: String,
    /// The only node, where its slot has one.
    pub node: Option<String>,
    /// Nodes that are unlike the others.
    pub unlike: Vec<String>,
}

/// A trial that has its node. While it lives others may wait for room.
pub(crate) struct Occupied(Nodes);

impl Nodes {
    /// Of a run with so many slots, of which `share` may be on one node.
    pub(crate) fn new(run: String, slots: usize, share: usize) -> Self {
        let known = Known {
            of_slot: vec![None; slots],
            ..Known::default()
        };
        Self {
            run,
            share: share.max(1),
            known: Arc::new(Mutex::new(known)),
        }
    }

    /// Where the next trial of a slot may run.
    pub(crate) fn place(&self, slot: usize) -> Place {
        let known = self.known();
        Place {
            slot: format!("{}-{slot}", self.run),
            share: (slot % self.share).to_string(),
            node: known.of_slot.get(slot).cloned().flatten(),
            unlike: known.unlike.iter().cloned().collect(),
        }
    }

    /// A trial of a slot has its node.
    pub(crate) fn occupy(&self, slot: usize, node: Option<String>) -> Occupied {
        let mut known = self.known();
        known.running += 1;
        if let Some(of_slot) = known.of_slot.get_mut(slot) {
            *of_slot = node;
        }
        Occupied(self.clone())
    }

    /// The node of a slot is not to be relied on: its trial was lost.
    pub(crate) fn leave(&self, slot: usize) {
        if let Some(of_slot) = self.known().of_slot.get_mut(slot) {
            *of_slot = None;
        }
    }

    /// A node is not like the one that was looked at.
    pub(crate) fn avoid(&self, slot: usize, node: &str) {
        self.known().unlike.insert(node.to_owned());
        self.leave(slot);
    }

    /// Whether a trial of this run has a node, which it will give back.
    pub(crate) fn is_any_occupied(&self) -> bool {
        self.known().running > 0
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let mut known = self.0.known();
        known.running = known.running.saturating_sub(1);
    }
}

impl Place {
    /// The labels of its pod.
    pub fn labels(&self) -> [(&'static str, &str); 2] {
        [(SLOT, &self.slot), (SHARE, &self.share)]
    }

    /// The affinity of its pod. Two of one slot never run at once: the second may begin while the
    /// first is still being taken away.
    pub fn affinity(&self) -> Value {
        let apart = json!([{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchExpressions": [
                { "key": SHARE, "operator": "In", "values": [self.share] },
                { "key": SLOT, "operator": "NotIn", "values": [self.slot] },
            ] },
        }]);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let mut affinity = json!({ "podAntiAffinity": { required: apart } });
        let field = |operator: &str, node: &String| json!({ "key": "metadata.name", "operator": operator, "values": [node] });
        let only = self.node.iter().map(|node| field("In", node));
        let never = self.unlike.iter().map(|node| field("NotIn", node));
        let fields: Vec<Value> = only.chain(never).collect();
        if !fields.is_empty() {
            let terms = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
            affinity["nodeAffinity"] = json!({ required: terms });
        }
        affinity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Affinity;

    #[test]
    fn a_slot_keeps_its_node_until_the_node_is_lost_or_unlike() {
        let nodes = Nodes::new("r".to_owned(), 2, 1);
        assert_eq!(nodes.place(0).node, None);
        let occupied = nodes.occupy(0, Some("a".to_owned()));
        assert!(nodes.is_any_occupied());
        drop(occupied);
        assert!(!nodes.is_any_occupied());
        assert_eq!(nodes.place(0).node.as_deref(), Some("a"));
        assert_eq!(nodes.place(1).node, None);
        nodes.leave(0);
        assert_eq!(nodes.place(0).node, None);
        nodes.avoid(1, "b");
        assert_eq!(nodes.place(0).unlike, ["b"]);
    }

    #[test]
    fn as_many_share_a_node_as_may() {
        let share = |share| {
            let nodes = Nodes::new("r".to_owned(), 4, share);
            [0, 1, 2, 3].map(|slot| nodes.place(slot).share)
        };
        assert_eq!(share(1), ["0", "0", "0", "0"]);
        assert_eq!(share(2), ["0", "1", "0", "1"]);
    }

    #[test]
    fn the_api_knows_its_affinity() {
        let place = Place {
            slot: "r-1".to_owned(),
            share: "0".to_owned(),
            node: Some("a".to_owned()),
            unlike: vec!["b".to_owned(), "c".to_owned()],
        };
        let affinity: Affinity = serde_json::from_value(place.affinity()).expect("it is known");
        let required = affinity
            .node_affinity
            .and_then(|of| of.required_during_scheduling_ignored_during_execution);
        let fields = required.map(|of| of.node_selector_terms[0].match_fields.clone());
        // The API server takes one value in each, and all must hold.
        let fields = fields.flatten().unwrap_or_default();
        let all: Vec<_> = fields
            .iter()
            .map(|field| {
                (
                    field.operator.as_str(),
                    field.values.clone().unwrap_or_default(),
                )
            })
            .collect();
        let one = |name: &str| vec![name.to_owned()];
        assert_eq!(
            all,
            [("In", one("a")), ("NotIn", one("b")), ("NotIn", one("c"))]
        );
    }
}
