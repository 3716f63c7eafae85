use super::MemoryHook;

#[test]
fn probe_of_another_tenant_reads_both_memories() {
    let probe = MemoryHook::CrossTenant {
        foreign: "theirs".to_owned(),
    };
    assert_eq!(probe.memory_refs("ours"), ["ours", "theirs"]);
    for hook in [MemoryHook::WriteThenRead, MemoryHook::Ttl] {
        assert_eq!(hook.memory_refs("ours"), ["ours"]);
    }
}
