use super::*;

fn slots(total: usize) -> Arc<WorkerSlots> {
    WorkerSlots::new(Quota {
        total,
        per_tenant: usize::MAX,
        per_target: usize::MAX,
        packs: 4,
    })
}

fn call(tenant: &str, target: &str) -> Lane {
    Lane {
        class: WorkClass::Call,
        tenant: TenantId::new(tenant),
        target: target.to_owned(),
    }
}

fn take_all(slots: &Arc<WorkerSlots>, lane: &Lane) -> Vec<WorkerSlot> {
    std::iter::from_fn(|| slots.take(lane)).collect()
}

#[test]
fn one_tenant_gets_at_most_half_of_the_slots() {
    let slots = slots(256);
    let first = take_all(&slots, &call("a", "x"));
    assert_eq!(first.len(), 128);
    let second = take_all(&slots, &call("b", "x"));
    assert_eq!(second.len(), 64);
    let third = take_all(&slots, &call("c", "x"));
    assert_eq!(third.len(), 32);
    assert_eq!(slots.free(), 32);
}

#[test]
fn new_tenant_gets_a_slot_while_others_hang() {
    let slots = slots(64);
    let mut held = Vec::new();
    for tenant in 0..6 {
        let taken = take_all(&slots, &call(&format!("t{tenant}"), "hangs"));
        assert!(!taken.is_empty(), "tenant {tenant}");
        held.extend(taken);
    }
}

#[test]
fn within_its_limit_one_target_leaves_half_to_the_tenants_others() {
    let slots = WorkerSlots::new(Quota {
        total: 256,
        per_tenant: 128,
        per_target: 128,
        packs: 4,
    });
    let hanging = take_all(&slots, &call("a", "hangs"));
    assert_eq!(hanging.len(), 64);
    let well = take_all(&slots, &call("a", "well"));
    assert_eq!(well.len(), 32);
    drop(hanging);
    assert_eq!(
        take_all(&slots, &call("a", "well")).len(),
        32,
        "free slots are used"
    );
}

#[test]
fn fixed_limits_hold_on_top() {
    let slots = WorkerSlots::new(Quota {
        total: 256,
        per_tenant: 10,
        per_target: 3,
        packs: 2,
    });
    assert_eq!(take_all(&slots, &call("a", "x")).len(), 3);
    let packs = take_all(&slots, &call("b", PACKS));
    assert_eq!(packs.len(), 2);
    let mut held = Vec::new();
    for target in 0..20 {
        held.extend(take_all(&slots, &call("c", &format!("t{target}"))));
    }
    assert_eq!(held.len(), 10);
}

#[test]
fn released_slots_leave_no_tenant_state() {
    let slots = slots(4);
    drop(take_all(&slots, &call("a", "x")));
    assert_eq!(slots.in_use(), 0);
    assert!(slots.held.lock().tenants.is_empty());
}

#[test]
fn a_single_slot_can_be_taken() {
    assert!(slots(1).take(&call("a", "x")).is_some());
}

#[test]
fn targets_are_identified_by_host_and_port() {
    for (url, target) in [
        ("https://API.Example.com/v1/things?x=1", "api.example.com"),
        ("https://api.example.com:443", "api.example.com"),
        ("http://api.example.com:8080/", "api.example.com:8080"),
        ("http://user:secret@10.0.0.1:80/x", "10.0.0.1"),
        ("http://[::1]:9000/x", "[::1]:9000"),
        ("nonsense", "nonsense"),
    ] {
        assert_eq!(authority(url), target, "{url}");
    }
}
