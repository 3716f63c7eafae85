//! Owner and lineage of a run, and memory events, as clients see them. A memory write shows ids and
//! tags, never content.

use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::{Event, ForkedFrom, MemoryEntry, Owner};

/// Compaction is never requested by a client.
pub(super) const COMPACTION_TRIGGER: &str = "host-managed";

pub(super) fn memory_payload(event: &Event, out: &mut impl WriteFields) {
    match event {
        Event::MemoryWritten { node, entry } => {
            out.set("memoryRef", &entry.memory_ref);
            out.set("memoryId", &entry.id);
            out.node(node);
            out.opt("agentId", entry.agent.as_ref());
            out.opt("tags", (!entry.tags.is_empty()).then_some(&entry.tags));
        }
        Event::MemoryDeleted {
            node,
            memory_ref,
            id,
            ..
        } => {
            out.set("memoryRef", memory_ref);
            out.opt("memoryId", id.as_ref());
            out.node(node);
        }
        Event::MemoryCompacted {
            node,
            output,
            sources,
        } => {
            out.set("memoryRef", &output.memory_ref);
            out.set("outputId", &output.id);
            out.set("sourceIds", sources);
            out.set("sourceCount", sources.len());
            out.set("trigger", COMPACTION_TRIGGER);
            out.set("byteSize", MemoryEntry::text_of(&output.value).len());
            out.node(node);
        }
        Event::ReplayDiverged {
            source,
            sequence,
            kind,
        } => {
            out.set("sourceRunId", source);
            out.set("atSequence", sequence);
            out.set("originalEventId", source.event_id(*sequence));
            out.set("divergenceKind", kind);
        }
        _ => unreachable!("called only for memory and replay events"),
    }
}

/// The lineage of a fork; separate from parents.
pub(super) fn forked_from(fork: &ForkedFrom) -> Value {
    json!({
        "runId": fork.run_id,
        "fromSeq": fork.from_seq,
        "mode": fork.mode.as_str(),
    })
}

pub(super) fn owner(owner: &Owner) -> Value {
    let mut out = Fields::default();
    out.set("tenant", &owner.tenant);
    out.opt("workspace", owner.workspace.as_ref());
    out.opt("principal", owner.principal.as_ref());
    Value::Object(out.0)
}
