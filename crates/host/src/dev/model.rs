//! A model that needs no key and no network, for a newcomer's first workflows.

use crate::config::{Model, Reached};
use tandem_nodes::Script;

/// What its nodes call the provider.
pub(super) const NAME: &str = "scripted";

const SCRIPT: &str = r#"{
  "answers": [
    { "when": { "purpose": "extract" }, "structured": { "answer": "forty-two" }, "times": 0 },
    { "when": { "contains": "how much" }, "text": "Forty euro.", "times": 0 }
  ],
  "otherwise": { "text": "How can I help?" }
}"#;

pub(super) fn model() -> Model {
    let script = Script::parse(SCRIPT).expect("the built-in script can be played");
    Model {
        default_model: Some("script".to_owned()),
        reached: Reached::Scripted(script),
    }
}

#[cfg(test)]
#[test]
fn the_built_in_script_can_be_played() {
    assert!(matches!(model().reached, Reached::Scripted(_)));
}
