//! Two thousand simulated histories with crashes, faults, late timers and repeated deliveries. A
//! failure prints its seed and the command that reproduces it.

use tandem_testkit::sim::run_many;

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
fn same_seed_gives_the_same_history() {
    for seed in 0..20 {
        let stats = tandem_testkit::sim::run(seed);
        assert_eq!(stats, tandem_testkit::sim::run(seed), "seed {seed}");
    }
}
