//! The command line of the task.

use super::sample::Mutant;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_COUNT: usize = 300;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) seed: u64,
    /// Mutants of all packages together.
    pub(super) count: usize,
    /// Of the sample, only mutants whose key contains one of these texts. All of them if it is empty.
    pub(super) only: Vec<String>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            seed: DEFAULT_SEED,
            count: DEFAULT_COUNT,
            only: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let value = arguments.next();
            let value = value.ok_or_else(|| format!("{flag} needs a value"))?;
            let invalid = |_| format!("{flag} needs a number, not {value:?}");
            match flag.as_str() {
                "--seed" => options.seed = value.parse().map_err(invalid)?,
                "--count" => options.count = value.parse().map_err(invalid)?,
                "--only" => options.only.push(value.clone()),
                _ => return Err(format!("unknown option {flag}; see `cargo xtask`")),
            }
        }
        Ok(options)
    }

    /// How many mutants each package gets, in proportion to its share.
    pub(super) fn counts(&self, shares: Vec<usize>) -> Vec<usize> {
        let whole: usize = shares.iter().sum();
        let count = |share: usize| (self.count * share).div_ceil(whole);
        shares.into_iter().map(count).collect()
    }

    pub(super) fn admits(&self, mutant: &Mutant) -> bool {
        let contains = |text: &String| mutant.key.contains(text.as_str());
        self.only.is_empty() || self.only.iter().any(contains)
    }
}
