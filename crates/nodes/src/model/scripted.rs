//! A scripted model for nodes: no key, no network, the same answers every time.

use super::failure::UNAVAILABLE;
use super::script::{Script, ScriptProgress, ScriptedAnswer, ScriptedCall};
use super::{count_usage, inputs};
use parking_lot::Mutex;
use serde_json::Value;
use std::time::Duration;
use tandem_record::conversation::ModelPurpose;
use tandem_record::{EffectId, ErrorInfo, ModelAnswer, ModelRequest, ModelRole, ModelStop};

pub(super) struct ScriptedModel {
    script: Script,
    progress: Mutex<ScriptProgress>,
}

impl ScriptedModel {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            progress: Mutex::default(),
        }
    }

    pub(super) async fn call(
        &self,
        request: &ModelRequest,
        effect: &EffectId,
    ) -> Result<ModelAnswer, ErrorInfo> {
        let purpose = match request.schema {
            Some(_) => ModelPurpose::Extract,
            None => ModelPurpose::Chat,
        };
        let text = current_text(request);
        let asked = ScriptedCall {
            purpose,
            user_text: &text,
            after_tool: None,
        };
        let choice = self.progress.lock().take(&self.script, effect, &asked);
        let Some(answer) = self.script.answer(choice) else {
            let message = format!("The script of `{}` has no answer left.", request.provider);
            return Err(ErrorInfo::new(UNAVAILABLE, message));
        };
        if answer.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
        }
        model_answer(answer, request)
    }
}

fn model_answer(answer: &ScriptedAnswer, request: &ModelRequest) -> Result<ModelAnswer, ErrorInfo> {
    if let Some(why) = &answer.fail {
        let message = format!("The script of `{}` fails: {why}.", request.provider);
        return Err(ErrorInfo::new(UNAVAILABLE, message).retryable());
    }
    let structured = answer.structured.as_ref().map(Value::to_string);
    let text = answer.text.clone().or(structured).unwrap_or_default();
    Ok(ModelAnswer {
        usage: Some(count_usage(inputs(request), &text)),
        text: Some(text),
        data: answer.structured.clone(),
        stop: ModelStop::End,
        refusal: None,
    })
}

/// The last user messages: everything since the last message of the model.
fn current_text(request: &ModelRequest) -> String {
    let messages = request.messages.iter().rev();
    let since = messages.take_while(|m| m.role != ModelRole::Assistant);
    let mut texts: Vec<&str> = since
        .filter(|m| m.role == ModelRole::User)
        .map(|m| m.content.as_str())
        .collect();
    texts.reverse();
    texts.join("\n")
}
