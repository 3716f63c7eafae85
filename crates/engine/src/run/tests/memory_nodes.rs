//! Nodes that write and read memory: their settings, and what is recorded.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::node::Kind;
use serde_json::{Value, json};
use tandem_record::Event;

fn memory(config: Value) -> WorkflowBuilder {
    workflow("w").node("m", "vendor.tandem.memory", config)
}

fn put(tags: Value) -> WorkflowBuilder {
    memory(json!({"action": "put", "key": "k", "value": 1, "tags": tags}))
}

#[test]
fn tags_of_an_entry_are_recorded_without_empty_ones() {
    let run = RunHarness::started(put(json!(["a", "", "b"])));
    let written = run.log().iter().find_map(|recorded| match &recorded.event {
        Event::MemoryWritten { entry, .. } => Some(entry.tags.clone()),
        _ => None,
    });
    assert_eq!(written.expect("an entry"), ["a", "b"]);
}

#[test]
fn number_and_length_of_tags_are_limited() {
    let tagged = |count: usize, chars: usize| put(json!(vec!["t".repeat(chars); count]));
    tagged(32, 256).compile();
    for refused in [tagged(33, 1), tagged(1, 257), put(json!("t"))] {
        assert_eq!(refused.faults()[0].path, "/nodes/0/config/tags");
    }
}

/// A replay executes what only reads and copies what was recorded of the others.
#[test]
fn only_reads_of_a_fixed_key_are_repeatable() {
    for (config, is_repeatable) in [
        (json!({"action": "get", "key": "k"}), true),
        (json!({"action": "list"}), true),
        (json!({"action": "get", "keyFrom": "v"}), false),
        (json!({"action": "put", "key": "k", "value": 1}), false),
        (json!({"action": "delete", "key": "k"}), false),
    ] {
        let definition = memory(config.clone()).variable("v", json!({})).compile();
        let kind: &Kind = &definition.nodes[0].kind;
        assert_eq!(kind.is_repeatable(), is_repeatable, "{config}");
    }
}
