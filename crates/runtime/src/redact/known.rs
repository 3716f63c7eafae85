//! Texts that are stored as they are (names, documents) must not hold a configured secret. They are refused,
//! not changed: a name or a document that was changed would not be what its author meant.

use super::Redactor;
use serde_json::Value;

impl Redactor {
    /// Whether the text holds a configured secret in one of its forms. What merely looks like a credential
    /// does not count.
    pub fn holds_known_secret(&self, text: &str) -> bool {
        self.forms
            .as_ref()
            .is_some_and(|forms| forms.is_match(text))
    }

    /// The text without configured secrets; `None` when there was none.
    pub fn mask_known_secrets(&self, text: &str) -> Option<String> {
        self.replace_configured(text)
    }

    /// The JSON pointer to the first value that holds a configured secret. For the name of a member it is
    /// the pointer to the object: a pointer must not hold the secret.
    pub fn place_of_known_secret(&self, value: &Value) -> Option<String> {
        self.forms.as_ref()?;
        let mut pointer = String::new();
        self.search(value, &mut pointer).then_some(pointer)
    }

    /// Whether one was found; the pointer then leads to it.
    fn search(&self, value: &Value, pointer: &mut String) -> bool {
        let here = pointer.len();
        match value {
            Value::String(text) => self.holds_known_secret(text),
            Value::Number(number) => self.numeric && self.holds_known_secret(&number.to_string()),
            Value::Array(items) => items.iter().enumerate().any(|(at, item)| {
                pointer.truncate(here);
                pointer.push_str(&format!("/{at}"));
                self.search(item, pointer)
            }),
            Value::Object(members) => {
                if members.keys().any(|name| self.holds_known_secret(name)) {
                    return true;
                }
                members.iter().any(|(name, member)| {
                    pointer.truncate(here);
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.search(member, pointer)
                })
            }
            Value::Null | Value::Bool(_) => false,
        }
    }
}
