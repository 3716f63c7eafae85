//! What became of the mutants, and whether that is acceptable.

use super::accepted::Accepted;
use super::sample::Mutant;
use crate::Outcome;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A test failed.
    Caught,
    /// No test failed.
    Missed,
    /// It does not compile.
    Unviable,
    /// The tests did not end. That is noticed too.
    TimedOut,
}

impl Fate {
    fn from_summary(summary: &str) -> Option<Self> {
        match summary {
            "CaughtMutant" => Some(Self::Caught),
            "MissedMutant" => Some(Self::Missed),
            "Unviable" => Some(Self::Unviable),
            "Timeout" => Some(Self::TimedOut),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Report {
    /// By key. A later test of the same mutant replaces the earlier one.
    tested: BTreeMap<String, (Mutant, Fate)>,
}

impl Report {
    /// Adds what `cargo-mutants` reports about the chosen mutants. Every one must have been tested.
    pub(super) fn add(&mut self, chosen: &[Mutant], outcomes: &Value) -> Outcome {
        let outcomes = outcomes["outcomes"].as_array().into_iter().flatten();
        let fates: BTreeMap<&str, Fate> = outcomes
            .filter_map(|outcome| {
                let name = outcome["scenario"]["Mutant"]["name"].as_str()?;
                Some((name, Fate::from_summary(outcome["summary"].as_str()?)?))
            })
            .collect();
        for mutant in chosen {
            let fate = fates.get(mutant.name.as_str());
            let fate = fate.ok_or_else(|| format!("{} was not tested", mutant.name))?;
            self.tested
                .insert(mutant.key.clone(), (mutant.clone(), *fate));
        }
        Ok(())
    }

    /// Whether no test noticed it.
    pub(super) fn is_missed(&self, mutant: &Mutant) -> bool {
        let tested = self.tested.get(&mutant.key);
        tested.is_some_and(|(_, fate)| *fate == Fate::Missed)
    }

    fn with_fate(&self, fate: Fate) -> impl Iterator<Item = &Mutant> {
        let tested = self.tested.values();
        tested
            .filter(move |(_, its)| *its == fate)
            .map(|(mutant, _)| mutant)
    }

    /// Prints the summary and the missed mutants. Fails for those that are not accepted.
    pub(super) fn conclude(&self, accepted: &Accepted) -> Outcome {
        let count = |fate| self.with_fate(fate).count();
        println!(
            "{} mutants: {} caught, {} missed, {} unviable, {} timed out",
            self.tested.len(),
            count(Fate::Caught),
            count(Fate::Missed),
            count(Fate::Unviable),
            count(Fate::TimedOut)
        );
        let mut unlisted = 0;
        for mutant in self.with_fate(Fate::Missed) {
            match accepted.reason(&mutant.key) {
                Some(reason) => println!("accepted: {}\n    {reason}", mutant.name),
                None => {
                    unlisted += 1;
                    println!("MISSED: {}\n    {}", mutant.name, mutant.key);
                }
            }
        }
        let caught = self.with_fate(Fate::Caught);
        let stale = caught.filter(|mutant| accepted.reason(&mutant.key).is_some());
        let stale: Vec<&str> = stale.map(|mutant| mutant.key.as_str()).collect();
        if unlisted > 0 {
            return Err(format!(
                "{unlisted} mutants are missed: add a test that fails with each, or list it with a reason in \
                 xtask/src/mutants/accepted.txt"
            ));
        }
        if !stale.is_empty() {
            return Err(format!(
                "accepted mutants are caught; delete their lines: {stale:#?}"
            ));
        }
        Ok(())
    }
}
