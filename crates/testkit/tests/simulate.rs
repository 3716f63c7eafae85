//! Two thousand simulated histories with crashes, faults, late timers and repeated deliveries. A
//! failure prints its seed and the command that shows it again.

use tandem_testkit::sim::run_many;

#[test]
fn every_promise_holds_in_every_history() {
    let summary = run_many(0..2_000);
    let failures: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert_eq!(summary.seeds, 2_000);
    assert!(
        summary.told.runs > 2_000,
        "{:?} proves little",
        summary.told
    );
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    for seed in 0..20 {
        let told = tandem_testkit::sim::run(seed);
        assert_eq!(told, tandem_testkit::sim::run(seed), "seed {seed}");
    }
}
