//! Samples, the list of accepted mutants, and the verdict.

use super::options::Options;
use super::report::Report;
use super::sample::{Mutant, choose, config, diff, identify};
use super::{PACKAGES, accepted};
use serde_json::json;

fn names(lines: std::ops::Range<usize>) -> Vec<String> {
    let name = |line| format!("src/a.rs:{line}:5: replace f{line} -> &'static str with \"\"");
    lines.map(name).collect()
}

fn identified(names: &[String]) -> Vec<Mutant> {
    identify(names.iter().map(String::as_str)).unwrap()
}

fn options(arguments: &[&str]) -> Result<Options, String> {
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Options::parse(&arguments)
}

#[test]
fn key_has_no_line_and_tells_equal_changes_apart() {
    let names = [
        "src/a.rs:7:5: replace + with - in f",
        "src/a.rs:9:5: replace + with - in f",
    ];
    let keys = identify(names.into_iter()).unwrap();
    let keys: Vec<&str> = keys.iter().map(|mutant| mutant.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "src/a.rs: replace + with - in f",
            "src/a.rs: replace + with - in f #2"
        ]
    );
    assert!(identify(["a change without a place"].into_iter()).is_err());
}

#[test]
fn sample_depends_on_the_seed_and_not_on_the_order() {
    let all = identified(&names(0..100));
    let mut reversed = all.clone();
    reversed.reverse();
    let sample = choose(all.clone(), 7, 10);
    assert_eq!(sample.len(), 10);
    assert_eq!(sample, choose(reversed, 7, 10));
    assert_ne!(sample, choose(all.clone(), 8, 10));
    // A larger sample contains the smaller one.
    assert_eq!(choose(all, 7, 20)[..10], sample);
}

#[test]
fn configuration_names_every_mutant_exactly() {
    let text = config(&identified(&names(3..4)));
    let expected = r#"    "^src\\/a\\.rs:3:5: replace f3 \\-> \\&'static str with \"\"$","#;
    assert_eq!(text, format!("examine_re = [\n{expected}\n]\n"));
}

#[test]
fn diff_adds_the_lines_of_the_mutants() {
    let mutants = identified(&[names(4..5), names(2..3), names(2..3)].concat());
    let text = diff(&mutants, |_| Ok("one\ntwo\nthree\nfour\n".to_owned())).unwrap();
    let expected =
        "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,0 +2,1 @@\n+two\n@@ -2,0 +4,1 @@\n+four\n";
    assert_eq!(text, expected);
}

#[test]
fn count_is_shared_in_proportion() {
    let counts = |arguments| {
        let shares = PACKAGES.iter().map(|package| package.share).collect();
        options(arguments).unwrap().counts(shares)
    };
    assert_eq!(counts(&[]), [220, 80]);
    assert_eq!(counts(&["--count", "30"]), [22, 8]);
    assert!(options(&["--count", "many"]).is_err());
    assert!(options(&["--seed"]).is_err());
    assert!(options(&["--fast", "1"]).is_err());
}

#[test]
fn missed_mutant_must_be_accepted_and_caught_one_must_not() {
    let mutants = identified(&names(0..2));
    let outcomes = |summaries: [&str; 2]| {
        let outcome = |(mutant, summary): (&Mutant, _)| json!({"scenario": {"Mutant": {"name": mutant.name}}, "summary": summary});
        let tested: Vec<_> = mutants.iter().zip(summaries).map(outcome).collect();
        json!({"outcomes": tested})
    };
    let concluded = |summaries, list| {
        let mut report = Report::default();
        report.add(&mutants, &outcomes(summaries))?;
        report.conclude(&accepted::parse(list).unwrap())
    };
    let list =
        "# why\nsrc/a.rs: replace f1 -> &'static str with \"\"\n    The text is only logged.\n";
    assert_eq!(concluded(["CaughtMutant", "Timeout"], ""), Ok(()));
    assert_eq!(concluded(["Unviable", "MissedMutant"], list), Ok(()));
    let missed = concluded(["Unviable", "MissedMutant"], "").unwrap_err();
    assert!(missed.starts_with("1 mutants are missed"), "{missed}");
    let stale = concluded(["CaughtMutant", "CaughtMutant"], list).unwrap_err();
    assert!(
        stale.contains("delete their lines") && stale.contains("replace f1"),
        "{stale}"
    );
    let untested = Report::default().add(&mutants, &json!({"outcomes": []}));
    assert!(untested.unwrap_err().ends_with("was not tested"));
}

#[test]
fn second_test_of_a_mutant_replaces_the_first() {
    let mutants = identified(&names(0..1));
    let outcomes = |summary: &str| json!({"outcomes": [{"scenario": {"Mutant": {"name": mutants[0].name}}, "summary": summary}]});
    let mut report = Report::default();
    report.add(&mutants, &outcomes("MissedMutant")).unwrap();
    assert!(report.is_missed(&mutants[0]));
    report.add(&mutants, &outcomes("CaughtMutant")).unwrap();
    assert!(!report.is_missed(&mutants[0]));
    let nothing = accepted::parse("").unwrap();
    assert_eq!(report.conclude(&nothing), Ok(()));
}

#[test]
fn accepted_mutant_needs_a_reason() {
    accepted::read().expect("the list is well-formed");
    assert!(accepted::parse("src/a.rs: replace f\n").is_err());
    assert!(accepted::parse("src/a.rs: replace f\nsrc/b.rs: replace g\n    why\n").is_err());
    assert!(accepted::parse("    why\n").is_err());
    assert!(accepted::parse("src/a.rs: f\n  x\nsrc/a.rs: f\n  y\n").is_err());
}
