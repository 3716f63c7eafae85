//! Why a command fails, in one line: what failed, why, and what to do.

use std::fmt;

#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    next: String,
}

impl Failure {
    /// `what` includes the reason; `next` is a sentence with the next step.
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            next: next.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.what, self.next)
    }
}

impl std::error::Error for Failure {}
