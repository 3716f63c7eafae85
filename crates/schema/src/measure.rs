//! The shape of an instance, as far as the work of an evaluation depends on it.

use crate::limits::MAX_INSTANCE_DEPTH;
use serde_json::Value;

/// How many values and how many bytes of text there are at each depth. The name of a member counts
/// as text at the depth of its value.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) values: [u64; MAX_INSTANCE_DEPTH],
    pub(crate) bytes: [u64; MAX_INSTANCE_DEPTH],
    /// Levels in use, at least one.
    pub(crate) levels: usize,
}

impl Shape {
    /// `None` when the instance is nested too deeply to be evaluated.
    pub(crate) fn of(instance: &Value) -> Option<Self> {
        let mut shape = Self {
            values: [0; MAX_INSTANCE_DEPTH],
            bytes: [0; MAX_INSTANCE_DEPTH],
            levels: 0,
        };
        shape.add(instance, 0).then_some(shape)
    }

    fn add(&mut self, value: &Value, depth: usize) -> bool {
        if depth >= MAX_INSTANCE_DEPTH {
            return false;
        }
        self.levels = self.levels.max(depth + 1);
        self.values[depth] += 1;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => {
                self.bytes[depth] += text.len() as u64;
                true
            }
            Value::Array(items) => items.iter().all(|item| self.add(item, depth + 1)),
            Value::Object(members) => members.iter().all(|(name, member)| {
                if let Some(bytes) = self.bytes.get_mut(depth + 1) {
                    *bytes += name.len() as u64;
                }
                self.add(member, depth + 1)
            }),
        }
    }
}
