//! Two thousand simulated histories with crashes, faults, late timers and repeated deliveries. A
//! failure prints its seed and the command that reproduces it.

use tandem_testkit::sim::{StoreKind, memory_store, run_many, run_many_processes, run_processes};

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

#[test]
fn same_seed_gives_the_same_history() {
    for seed in 0..20 {
        let stats = tandem_testkit::sim::run(seed);
        assert_eq!(stats, tandem_testkit::sim::run(seed), "seed {seed}");
    }
}
