//! Two thousand simulated histories with crashes, faults, late timers and repeated deliveries, and simulated
//! conversations. A failure prints its seed and the command that reproduces it.

use tandem_testkit::sim::{
    StoreKind, memory_store, run_conversations, run_crash_points, run_many, run_many_conversations,
    run_many_processes, run_processes,
};

#[test]
fn all_invariants_hold_for_every_seed() {
    let summary = run_many(0..2_000);
    let failures: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert_eq!(summary.seeds, 2_000);
    assert!(
        summary.stats.runs > 2_000,
        "{:?} proves little",
        summary.stats
    );
}

#[test]
fn several_processes_on_one_store_keep_all_invariants() {
    let summary = run_many_processes(0..200);
    let failures: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    let stats = summary.stats;
    let faults = [stats.crashes, stats.pauses, stats.partitions];
    assert!(faults.iter().all(|count| *count > 200), "{stats:?}");
    assert!(stats.purged_runs > 200, "{stats:?} proves little");
}

#[test]
fn same_seed_of_several_processes_gives_the_same_history() {
    for seed in 0..8 {
        let history = || run_processes(seed, memory_store(), StoreKind::Memory);
        assert_eq!(history(), history(), "seed {seed}");
    }
}

// Users and admins of two tenants, one to three processes that fail, programs of flows kept and dropped between turns:
// Z-1 (half: in random days), Z-2 (half: in random days), Z-8 (half: in random days), Z-10 (half: in random days),
// Z-16 (half: in random days), Z-21 (half: in random days), Z-59 (half: in random days), Z-75 (half: in random days),
// Z-152 (half: in random days), Z-185 (half: in random days), Z-190 (half: in random days),
// Z-192 (half: in random days), Z-193 (half: in random days), Z-197 (half: in random days),
// Z-198 (half: in random days), Z-200 (half: in random days), Z-205 (half: in random days),
// Z-260 (half: in random days), Z-262 (half: in random days), Z-94 (half: in random days),
// Z-109 (half: in random days), Z-163 (half: in random days), Z-166 (half: in random days),
// Z-170 (half: in random days), Z-171 (half: in random days), Z-174 (half: in random days),
// Z-217 (half: in random days)
#[test]
fn conversations_keep_all_properties() {
    let summary = run_many_conversations(0..40);
    let failures: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    let stats = summary.stats;
    let seen = [
        stats.sessions,
        stats.flow_runs,
        stats.crashes,
        stats.rebuilt_flows,
        stats.bridges,
        stats.forwarded,
        stats.scheduled_turns,
        stats.campaigns,
    ];
    assert!(
        seen.iter().all(|count| *count > 100),
        "{stats:?} proves little"
    );
    assert!(stats.strict > 5, "{stats:?} proves little");
    assert!(
        stats.turns > 1_000 && stats.texts > 1_000,
        "{stats:?} proves little"
    );
}

// Z-2 (half: a crash at each commit), Z-10 (half: a crash at each commit), Z-21 (half: a crash at each commit),
// Z-59 (half: a crash at each commit), Z-185 (half: a crash at each commit)
#[test]
fn conversation_survives_a_crash_at_each_of_its_commits() {
    let stats = run_crash_points(0).unwrap_or_else(|why| panic!("seed 0: {why}"));
    assert!(stats.crashes > 50, "{stats:?} proves little");
}

#[test]
fn same_seed_of_conversations_gives_the_same_history() {
    for seed in 0..4 {
        let history = || run_conversations(seed, memory_store(), StoreKind::Memory);
        assert_eq!(history(), history(), "seed {seed}");
    }
}

#[test]
fn same_seed_gives_the_same_history() {
    for seed in 0..20 {
        let stats = tandem_testkit::sim::run(seed);
        assert_eq!(stats, tandem_testkit::sim::run(seed), "seed {seed}");
    }
}
