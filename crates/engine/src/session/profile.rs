//! Changes of the user's profile that the agent's code or the user ask for.

use super::draft::Draft;
use serde_json::{Value, json};
use tandem_record::conversation::{ChatToolCall, ProfileChange, SessionEventBody as Body};

const MAX_NAME_CHARS: usize = 200;
const MAX_TAGS: usize = 100;
const MAX_PREFERENCES_BYTES: usize = 16 * 1024;
pub(super) const REPLY_FORMAT: &str = "preferredReplyFormat";

/// Reads `{displayName?, tags?, preferences?}`.
pub fn change_of(value: &Value) -> Result<ProfileChange, String> {
    let fields = value.as_object().ok_or("the change is not an object")?;
    let mut change = ProfileChange::default();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("displayName", Value::String(text)) if is_name(text) => {
                change.display_name = Some(text.trim().to_owned());
                change.name_is_chosen = true;
            }
            ("tags", Value::Array(tags)) if tags.len() <= MAX_TAGS => {
                let texts = tags.iter().map(|tag| tag.as_str().map(str::to_owned));
                let texts: Option<Vec<String>> = texts.collect();
                change.tags = Some(texts.ok_or("a tag is not a text")?);
            }
            ("preferences", Value::Object(_))
                if value.to_string().len() <= MAX_PREFERENCES_BYTES =>
            {
                change.preferences = Some(value.clone());
            }
            _ => return Err(format!("{name} cannot be changed to this")),
        }
    }
    Ok(change)
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_NAME_CHARS
}

impl Draft<'_> {
    /// The tool `update_my_profile`: the model passes on what the user said about themselves.
    pub(super) fn update_profile(&mut self, call: &ChatToolCall) {
        match change_of(&call.args) {
            Ok(change) => {
                self.emit(Body::ProfileChanged(Box::new(ProfileChange {
                    // Tags are the desk's, not the user's.
                    tags: None,
                    ..change
                })));
                self.answer_tool(call, json!({"ok": true}).to_string(), false);
            }
            Err(problem) => {
                let content = super::model_loop::invalid_params(&call.name, &problem);
                self.answer_tool(call, content, true);
            }
        }
    }

    /// How the user wants replies.
    pub(super) fn set_reply_format(&mut self, format: &str) {
        self.emit(Body::ProfileChanged(Box::new(ProfileChange {
            preferences: Some(json!({ REPLY_FORMAT: format })),
            ..ProfileChange::default()
        })));
    }
}
