//! How many trials run at once with `--slots auto`.
//!
//! Owns the count: looks with the room of a trial, each on a node that no other look has had, until the
//! scheduler has none left. So it needs no right that trials do not need, counts what runs on the nodes
//! already as the scheduler does, and each node that counts has been looked at. Twice as many looks at
//! once each time.

use std::num::NonZeroU32;

use futures_util::future::join_all;
use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::TrialNode;
use loadline_experiment::MOST_SLOTS;
use loadline_protocol::RunRefusal;

use crate::gate::RequestGate;
use crate::look::NodeInspector;
use crate::nodes::NodeRegistry;
use crate::watched::{PodHalt, RoomPatience};

/// Counts from the first node on, which slot 0 has; each further node is assigned to a slot.
/// Errors: [`RunRefusal`]: whatever keeps the inspection pod from running.
pub(crate) async fn count_fitting_nodes(
    looks: &NodeInspector,
    nodes: &NodeRegistry,
    first: &TrialNode,
    size: InstanceSize,
) -> Result<NonZeroU32, RunRefusal> {
    let (mut slots, mut is_full) = (1, false);
    while !is_full && slots < MOST_SLOTS {
        let new = slots.min(MOST_SLOTS - slots);
        let wave = (slots..slots + new).map(|slot| {
            let place = nodes.placement_for_slot(slot).without_taken_nodes();
            async move {
                let gate = RequestGate::default();
                looks
                    .inspect_node(&place, Some(size), &gate, |_| RoomPatience::None)
                    .await
            }
        });
        let (before, mut is_any) = (slots, false);
        for looked in join_all(wave).await {
            let looked = match looked {
                Ok(looked) => looked,
                Err(PodHalt::Refused(refusal)) => return Err(refusal),
                // A node that goes away while it is looked at is none.
                Err(PodHalt::NoRoom(_) | PodHalt::Lost(_)) => {
                    is_full = true;
                    continue;
                }
            };
            if nodes.inspected_node(&looked.node.name).is_some() {
                continue;
            }
            is_any = true;
            match looked.unfit_reason(first) {
                None => {
                    nodes.assign_node(slots, looked.node);
                    slots += 1;
                }
                Some(_) => nodes.avoid(slots, &looked.node.name),
            }
        }
        // Looks that only meet where others were find nothing more.
        is_full |= !is_any && slots == before;
    }
    let slots = u32::try_from(slots).ok().and_then(NonZeroU32::new);
    Ok(slots.unwrap_or(NonZeroU32::MIN))
}
