//! What readers of a question do not see although the run uses it: values that the author marked as
//! sensitive.
//!
//! A question is stored as it is shown, so that whoever reads it (events, snapshots, inbox, links,
//! webhooks, a parent's mirror) sees the same. The true artifact is stored beside it
//! ([`tandem_record::Interrupt::hidden`]) and never leaves the process. What a person accepts is the
//! true artifact with their changes: a mask they left in its place stands for the value behind it.

use super::answer::invalid;
use super::state::Suspension;
use crate::run::refusal::Refusal;
use crate::run::state::Run;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use tandem_record::{Masking, Object};

/// Stands for a text about a decision that is not shown.
const HIDDEN_DECISION: &str = "The decision is not shown: it was made from sensitive values.";

impl Run {
    /// The inputs of a node as people see them.
    pub(in crate::run) fn shown_inputs<'i>(
        &self,
        ix: usize,
        inputs: &'i Object,
    ) -> Cow<'i, Object> {
        let sensitivity = self.sensitivity();
        if sensitivity.mode == Masking::Passthrough || !sensitivity.hides_anything() {
            return Cow::Borrowed(inputs);
        }
        let ports = self.def.sensitive_ports(&self.def.nodes[ix], &sensitivity);
        if !inputs.keys().any(|port| ports.contains(port)) {
            return Cow::Borrowed(inputs);
        }
        let shown = inputs.iter().filter_map(|(port, value)| {
            let shown = match ports.contains(port) {
                true => sensitivity.mode.mask_value(value)?,
                false => value.clone(),
            };
            Some((port.clone(), shown))
        });
        Cow::Owned(shown.collect())
    }

    /// Masks a supervisor's decision in what its question shows, if the supervisor was given it as
    /// something sensitive. Returns the true decision.
    pub(in crate::run) fn mask_decision(
        &self,
        supervisor: usize,
        data: &mut Value,
    ) -> Option<Value> {
        let sensitivity = self.sensitivity();
        let fields = data.as_object_mut()?;
        if !sensitivity.hides_decision_of(&self.def.nodes[supervisor].id) {
            return None;
        }
        for key in ["title", "description", "question", "prompt"] {
            if let Some(text) = fields.get_mut(key) {
                *text = Value::from(HIDDEN_DECISION);
            }
        }
        for question in fields
            .get_mut("questions")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            question["question"] = Value::from(HIDDEN_DECISION);
        }
        fields.remove("workers");
        let mut hidden = None;
        for key in ["artifactData", "decision"] {
            if let Some(decision) = fields.remove(key) {
                if let Some(masked) = sensitivity.mode.mask_value(&decision) {
                    fields.insert(key.to_owned(), masked);
                }
                hidden = Some(decision);
            }
        }
        hidden
    }
}

impl Suspension {
    /// The artifact as it was shown first.
    fn first_shown(&self) -> Option<&Value> {
        let data = &self.interrupt.data;
        self.proposed.as_ref().or_else(|| data.get("artifactData"))
    }

    /// An artifact with the values that were not shown.
    pub(super) fn true_artifact(&self, artifact: Option<&Value>) -> Option<Value> {
        match &self.interrupt.hidden {
            Some(hidden) => restored(artifact, self.first_shown(), hidden),
            None => artifact.cloned(),
        }
    }

    /// Refuses a change of what is not shown, and a mask that was moved to another place, where it
    /// would stand for itself. A value in the place of a mask would be as sensitive, but is shown like
    /// every answer.
    pub(super) fn check_masks(&self, edited: &Value) -> Result<(), Refusal> {
        let Some(hidden) = &self.interrupt.hidden else {
            return Ok(());
        };
        let shown = self.first_shown();
        let refused = |at: String, why: &str| invalid(&format!("/editedArtifactData{at}"), why);
        if let Some(at) = changed_mask(Some(edited), shown, hidden, "") {
            return refused(at, "is not shown, so it cannot be changed here");
        }
        let mut masks = BTreeSet::new();
        if let Some(shown) = shown {
            collect_masks(shown, hidden, &mut masks);
        }
        match misplaced(edited, shown, &masks, "") {
            None => Ok(()),
            Some(at) => refused(
                at,
                "stands for a value that is not shown; leave it where it was",
            ),
        }
    }
}

/// Where an edit gives another value in place of one that is not shown.
fn changed_mask(
    edited: Option<&Value>,
    shown: Option<&Value>,
    hidden: &Value,
    at: &str,
) -> Option<String> {
    if edited.is_none() || edited == shown || shown == Some(hidden) {
        return None;
    }
    match (edited, shown, hidden) {
        (Some(Value::Object(edited)), Some(Value::Object(shown)), Value::Object(hidden)) => {
            hidden.iter().find_map(|(key, below)| {
                let at = format!("{at}/{}", escaped(key));
                changed_mask(edited.get(key), shown.get(key), below, &at)
            })
        }
        _ => Some(at.to_owned()),
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn restored(edited: Option<&Value>, shown: Option<&Value>, hidden: &Value) -> Option<Value> {
    match (edited, shown) {
        (None, Some(_)) => None,
        // Left out for the reader.
        (None, None) => Some(hidden.clone()),
        (Some(edited), Some(shown)) if edited == shown => Some(hidden.clone()),
        (Some(Value::Object(edited)), Some(Value::Object(shown))) => {
            let Value::Object(hidden) = hidden else {
                return Some(Value::Object(edited.clone()));
            };
            let mut whole = Map::new();
            for key in edited.keys().chain(hidden.keys()) {
                let value = match hidden.get(key) {
                    Some(below) => restored(edited.get(key), shown.get(key), below),
                    None => edited.get(key).cloned(),
                };
                if let Some(value) = value {
                    whole.insert(key.clone(), value);
                }
            }
            Some(Value::Object(whole))
        }
        (Some(edited), _) => Some(edited.clone()),
    }
}

/// The texts that stand for hidden values.
fn collect_masks<'v>(shown: &'v Value, hidden: &Value, masks: &mut BTreeSet<&'v str>) {
    match (shown, hidden) {
        _ if shown == hidden => {}
        (Value::Object(shown), Value::Object(hidden)) => {
            for (key, value) in shown {
                if let Some(below) = hidden.get(key) {
                    collect_masks(value, below, masks);
                }
            }
        }
        (Value::String(mask), _) => {
            masks.insert(mask);
        }
        _ => {}
    }
}

/// Where a mask stands that was not there before.
fn misplaced(
    edited: &Value,
    shown: Option<&Value>,
    masks: &BTreeSet<&str>,
    at: &str,
) -> Option<String> {
    if Some(edited) == shown {
        return None;
    }
    match edited {
        Value::String(text) => masks.contains(text.as_str()).then(|| at.to_owned()),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
            misplaced(
                item,
                shown.and_then(|shown| shown.get(i)),
                masks,
                &format!("{at}/{i}"),
            )
        }),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let before = shown.and_then(|shown| shown.get(key));
            misplaced(value, before, masks, &format!("{at}/{}", escaped(key)))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
