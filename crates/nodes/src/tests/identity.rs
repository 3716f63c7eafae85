use crate::logical_invocation_id;

#[test]
fn the_published_vector() {
    let id = logical_invocation_id(
        &"tenant-a".into(),
        &"run-123".into(),
        &"node-1".into(),
        0,
        "openai:chat:completions",
    );
    assert_eq!(id.as_str(), "kQS2KVtmVlOw3-E9UR4HxR2MCPHbEh0A8HJ01eHP_W4");
}

#[test]
fn every_part_counts_and_none_runs_into_the_next() {
    let id = |tenant: &str, run: &str, node: &str, ordinal, provider| {
        logical_invocation_id(&tenant.into(), &run.into(), &node.into(), ordinal, provider)
    };
    let ids = [
        id("t", "r", "n", 1, "p"),
        id("t2", "r", "n", 1, "p"),
        id("t", "r2", "n", 1, "p"),
        id("t", "r", "n2", 1, "p"),
        id("t", "r", "n", 2, "p"),
        id("t", "r", "n", 11, "p"),
        id("t", "r", "n", 1, "p2"),
        id("t", "r", "n", 1, "1p"),
        id("tr", "", "n", 1, "p"),
    ];
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}
