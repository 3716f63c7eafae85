//! A child run to be created. It is created in the commit that names it: whoever reads its id finds
//! the run, and a parent that cancels a child always has one to cancel.

use crate::definition::Definition;
use std::sync::Arc;
use tandem_record::{Cause, Effect, EffectKind, RunId, RunRequest};

#[derive(Clone, Debug)]
pub struct NewChildRun {
    pub child: RunId,
    pub definition: Arc<Definition>,
    pub request: RunRequest,
    /// The parent's event that named it.
    pub cause: Cause,
    /// The decision that named it also cancels it.
    pub cancelled_at_creation: bool,
}

impl NewChildRun {
    /// Merges a cancellation that was decided together with the creation.
    pub(in crate::run) fn absorb_cancel_effect(&mut self, effects: &mut Vec<Effect>) {
        let mine = |effect: &Effect| matches!(&effect.kind, EffectKind::CancelChild { child } if *child == self.child);
        if let Some(at) = effects.iter().position(mine) {
            effects.remove(at);
            self.cancelled_at_creation = true;
        }
    }
}
