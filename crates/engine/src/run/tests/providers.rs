//! The models of a harness.

use crate::model::{Provider, Providers};

pub(super) fn providers() -> Providers {
    let provider = |id: &str, default: Option<&str>| {
        let provider = Provider {
            default_model: default.map(str::to_owned),
            programmed: id == "mock",
        };
        (id.to_owned(), provider)
    };
    Providers::from_iter([provider("acme", Some("large")), provider("mock", None)])
}
