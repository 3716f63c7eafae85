//! What tools answered in a session, by what they were asked.

use serde_json::Value;
use std::collections::HashMap;
use tandem_record::Recorded;
use tandem_record::conversation::{
    CodeError, CodeOutcome, SessionEvent, SessionEventBody as Body, SessionWork,
};

#[derive(Default)]
pub(super) struct RecordedTools {
    /// The call under way: tools of one turn are called one after the other.
    asked: Option<(String, String)>,
    /// The last answer to each call, as the model was told, by name and arguments.
    answers: HashMap<(String, String), String>,
}

impl RecordedTools {
    pub(super) fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match &recorded.event.body {
            Body::WorkRequested(requested) => {
                if let SessionWork::Tool { name, args } = &requested.work {
                    self.asked = Some((name.clone(), args.to_string()));
                }
            }
            Body::ToolAnswered {
                name,
                content,
                failed: false,
                ..
            } => {
                let asked = self.asked.take_if(|(asked, _)| asked == name);
                if let Some(asked) = asked {
                    self.answers.insert(asked, content.clone());
                }
            }
            _ => {}
        }
    }

    pub(super) fn answer(&self, name: &str, args: &Value) -> CodeOutcome {
        match self.answers.get(&(name.to_owned(), args.to_string())) {
            Some(content) => CodeOutcome {
                value: Some(
                    serde_json::from_str(content).unwrap_or_else(|_| Value::from(content.as_str())),
                ),
                ..CodeOutcome::default()
            },
            None => CodeOutcome {
                error: Some(CodeError {
                    code: "not_recorded".to_owned(),
                    message: format!("no answer of {name} to this was recorded"),
                }),
                ..CodeOutcome::default()
            },
        }
    }
}
