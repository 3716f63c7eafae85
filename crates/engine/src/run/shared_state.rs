//! A state that several runs share until one of them changes it. A run is handed on many times between a
//! command and its commit, also to other threads; its values are copied once, with the first change.

use crate::run::state::State;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedState(Arc<State>);

impl From<State> for SharedState {
    fn from(state: State) -> Self {
        Self(Arc::new(state))
    }
}

impl Deref for SharedState {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for SharedState {
    fn deref_mut(&mut self) -> &mut State {
        Arc::make_mut(&mut self.0)
    }
}
