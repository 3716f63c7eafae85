//! JSON objects under construction: as a value, or written as text at once. Text costs no tree of values, so
//! it is used where many events are sent.
//!
//! Invariant: a key is set once. Text would repeat it.

use serde::Serialize;
use serde_json::json;
use tandem_record::{NodeId, Object};

/// Takes the fields of one object, in order.
pub(crate) trait WriteFields {
    fn set(&mut self, key: &'static str, value: impl Serialize);

    /// Sets a field to an object.
    fn set_object(&mut self, key: &'static str, write: impl FnOnce(&mut Self));

    /// Absent keys are left out, never null.
    fn opt(&mut self, key: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Marks a payload that holds data from outside.
    fn untrusted(&mut self, untrusted: bool) {
        self.opt("contentTrust", untrusted.then_some("untrusted"));
    }

    fn node(&mut self, node: &NodeId) {
        self.set("nodeId", node);
    }
}

/// An object as a value.
#[derive(Default)]
pub(crate) struct Fields(pub(crate) Object);

impl WriteFields for Fields {
    fn set(&mut self, key: &'static str, value: impl Serialize) {
        self.0.insert(key.to_owned(), json!(value));
    }

    fn set_object(&mut self, key: &'static str, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.set(key, inner.0);
    }
}

/// An object as text, appended to a buffer.
pub(crate) struct TextFields<'a> {
    text: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> TextFields<'a> {
    pub(crate) fn write_object(text: &'a mut Vec<u8>, write: impl FnOnce(&mut Self)) {
        let mut fields = Self {
            text,
            is_first: true,
        };
        fields.braces(write);
    }

    fn braces(&mut self, write: impl FnOnce(&mut Self)) {
        self.text.push(b'{');
        self.is_first = true;
        write(self);
        self.is_first = false;
        self.text.push(b'}');
    }

    /// Keys are names of the protocol, which need no escapes.
    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(key.as_bytes());
        self.text.extend_from_slice(b"\":");
    }
}

impl WriteFields for TextFields<'_> {
    fn set(&mut self, key: &'static str, value: impl Serialize) {
        self.key(key);
        serde_json::to_writer(&mut *self.text, &value)
            .expect("events are plain data with text keys");
    }

    fn set_object(&mut self, key: &'static str, write: impl FnOnce(&mut Self)) {
        self.key(key);
        self.braces(write);
    }
}
