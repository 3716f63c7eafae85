//! Ids that the engine derives. They are hashes and not random, so that a decision made twice,
//! after a sequence conflict or a crash, names the same child and the same effect.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, NodeId, Partition, RunId, ScheduleId, Seq, TenantId,
    Timestamp, WorkflowId,
};

/// Id of one logical side effect of a node. Retries share it; `ordinal` distinguishes two intended
/// calls.
pub fn logical_invocation_id(
    tenant: &TenantId,
    run: &RunId,
    node: &NodeId,
    ordinal: u64,
    provider_key: &str,
) -> EffectId {
    let ordinal = ordinal.to_string();
    let parts = [
        "openwop:activity:v2",
        tenant.as_str(),
        run.as_str(),
        node.as_str(),
        &ordinal,
        provider_key,
    ];
    let digest = Sha256::digest(parts.join("\0").as_bytes());
    EffectId::from(URL_SAFE_NO_PAD.encode(digest))
}

/// Id of the `index`-th child that a node starts in its `execution`-th execution.
pub fn child_run_id(parent: &RunId, node: &NodeId, execution: u32, index: u32) -> RunId {
    let mut hash = Sha256::new();
    for part in ["tandem:child:v1", parent.as_str(), node.as_str()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(execution.to_be_bytes());
    hash.update(index.to_be_bytes());
    let digest = hash.finalize();
    // The parent's time-ordered prefix keeps children next to their parent in every index.
    let prefix = parent.as_str().get(..17).unwrap_or("run-");
    let prefix = prefix.trim_end_matches('-');
    RunId::from(format!("{prefix}-{}", hex(&digest[..12])))
}

/// Id of the flow run that a node starts. The time first, as in every id of a flow run, so that ids sort by
/// creation.
pub(crate) fn flow_run_id(
    now: Timestamp,
    parent: &RunId,
    node: &NodeId,
    execution: u32,
    attempt: u32,
) -> RunId {
    let text = format!("tandem:flow-of-node:v1\0{parent}\0{node}\0{execution}\0{attempt}");
    let digest = Sha256::digest(text.as_bytes());
    RunId::from(format!("flow-{:012x}-{}", now.0, hex(&digest[..10])))
}

/// Id of the schedule that carries out a trigger of a document. `owner` is `None` for a document that every tenant
/// sees.
pub fn workflow_schedule_id(
    owner: Option<&Partition>,
    workflow: &WorkflowId,
    trigger: &str,
) -> ScheduleId {
    let tenant = owner.map_or("", |owner| owner.tenant.as_str());
    let workspace = owner.and_then(|owner| owner.workspace.as_ref());
    let workspace = workspace.map_or("", |workspace| workspace.as_str());
    let text = format!("tandem:workflow-schedule:v1\0{tenant}\0{workspace}\0{workflow}\0{trigger}");
    let digest = Sha256::digest(text.as_bytes());
    ScheduleId::from(format!("wfs-{}", hex(&digest[..16])))
}

/// Id of the run that an occurrence of such a schedule starts: there is one run at most. In the form of other run ids,
/// so that ids sort by creation.
pub fn scheduled_run_id(
    schedule: &ScheduleId,
    workflow: &WorkflowId,
    trigger: &str,
    scheduled_for: Timestamp,
) -> RunId {
    let firing_key = format!("{workflow}:{trigger}:{}", scheduled_for.rfc3339());
    let text = format!("tandem:scheduled-run:v1\0{schedule}\0{firing_key}");
    let unique = hex(&Sha256::digest(text.as_bytes())[..10]);
    let time = format!("{:012x}", scheduled_for.0.max(0));
    RunId::from(format!(
        "run-{}-{}-7{}-8{}-{}",
        &time[..8],
        &time[8..12],
        &unique[..3],
        &unique[3..6],
        &unique[6..18]
    ))
}

/// Id of the interrupt that a node opens in its `round`-th execution.
pub(crate) fn interrupt_id(run: &RunId, node: &NodeId, round: u32) -> InterruptId {
    let text = format!("tandem:interrupt:v1\0{run}\0{node}\0{round}");
    let digest = Sha256::digest(text.as_bytes());
    InterruptId::from(format!("int-{}", hex(&digest[..16])))
}

/// Id of the note that replaces others, by the event that records it.
pub(crate) fn compaction_id(run: &RunId, at: Seq) -> String {
    let text = format!("tandem:compaction:v1\0{run}\0{at}");
    let digest = Sha256::digest(text.as_bytes());
    format!("{NOTE_PREFIX}{}", hex(&digest[..16]))
}

/// The prefix of every entry id, and so of the key of every note.
pub const NOTE_PREFIX: &str = "mem-";

/// Id of the `ordinal`-th entry that a node writes in one execution.
pub(crate) fn memory_id(run: &RunId, node: &NodeId, execution: u32, ordinal: usize) -> String {
    let text = format!("tandem:memory:v1\0{run}\0{node}\0{execution}\0{ordinal}");
    let digest = Sha256::digest(text.as_bytes());
    format!("{NOTE_PREFIX}{}", hex(&digest[..16]))
}

/// Id of the n-th tool call an agent makes at a node.
pub(crate) fn tool_call_id(run: &RunId, node: &NodeId, execution: u32, index: usize) -> String {
    let text = format!("tandem:tool:v1\0{run}\0{node}\0{execution}\0{index}");
    let digest = Sha256::digest(text.as_bytes());
    format!("call-{}", hex(&digest[..12]))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Content address of a workflow document: SHA-256 of its canonical JSON.
pub fn definition_hash(document: &serde_json::Value) -> DefinitionHash {
    let canonical =
        serde_jcs::to_vec(document).expect("a parsed JSON value always has a canonical form");
    DefinitionHash::from(hex(&Sha256::digest(&canonical)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effect_identity_matches_the_published_vector() {
        let id = logical_invocation_id(
            &TenantId::new("tenant-a"),
            &RunId::new("run-123"),
            &NodeId::new("node-1"),
            0,
            "openai:chat:completions",
        );
        assert_eq!(id.as_str(), "kQS2KVtmVlOw3-E9UR4HxR2MCPHbEh0A8HJ01eHP_W4");
    }

    #[test]
    fn child_run_ids_are_unique_per_position_and_deterministic() {
        let parent = RunId::new("run-0198c0de-0000-7000-8000-000000000001");
        let node = NodeId::new("call");
        let first = child_run_id(&parent, &node, 0, 0);
        assert_eq!(first, child_run_id(&parent, &node, 0, 0));
        assert_ne!(first, child_run_id(&parent, &node, 1, 0));
        assert_ne!(first, child_run_id(&parent, &node, 0, 1));
        assert!(!first.as_str().contains(':') && first.as_str().len() <= 128);
    }
}
