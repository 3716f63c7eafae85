//! Triggers that fire inside a run, when a channel is written.

use super::check::Built;
use super::document::Document;
use super::{ChannelTrigger, Problem, topology};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tandem_record::NodeId;

pub(super) fn compile(
    doc: &Document,
    built: &Built,
    problems: &mut Vec<Problem>,
) -> Vec<ChannelTrigger> {
    let by_id: HashMap<&NodeId, usize> = built.nodes.iter().map(|n| &n.id).zip(0..).collect();
    let ends: Vec<(usize, usize)> = built.edges.iter().map(|e| (e.source, e.target)).collect();
    let mut compiled = Vec::new();
    for (i, trigger) in doc.triggers.iter().enumerate() {
        if trigger.kind != "channel-write" {
            continue;
        }
        let at = format!("/triggers/{i}");
        let channel = trigger
            .config
            .get("channel")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !doc
            .channels
            .as_ref()
            .is_some_and(|c| c.contains_key(channel))
        {
            problems.push(Problem::new(
                format!("{at}/config/channel"),
                format!("{channel:?} is not a declared channel"),
            ));
        }
        let debounce = trigger
            .config
            .get("debounceMs")
            .map_or(Some(0), Value::as_u64);
        let Some(debounce_ms) = debounce.filter(|ms| *ms <= 60_000) else {
            problems.push(Problem::new(
                format!("{at}/config/debounceMs"),
                "must be 0 to 60000",
            ));
            continue;
        };
        let only_from = trigger
            .config
            .get("onlyFrom")
            .and_then(Value::as_str)
            .unwrap_or("any");
        if !["child", "parent", "any"].contains(&only_from) {
            problems.push(Problem::new(
                format!("{at}/config/onlyFrom"),
                "must be child, parent or any",
            ));
        }
        let Some(node) = trigger.node_id.as_ref().and_then(|n| by_id.get(n)) else {
            problems.push(Problem::new(
                format!("{at}/nodeId"),
                "names the node to fire",
            ));
            continue;
        };
        // Every write a run sees is its own; `child` writes cannot reach it on this host.
        if trigger.enabled && only_from != "child" {
            let lineage = topology::reach(built.nodes.len(), &ends, &BTreeSet::new(), *node);
            compiled.push(ChannelTrigger {
                id: trigger.id.clone(),
                channel: channel.to_owned(),
                node: *node,
                debounce_ms,
                lineage: lineage.into_iter().collect(),
            });
        }
    }
    compiled
}
