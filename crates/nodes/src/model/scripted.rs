//! A model that answers from a script: no key, no network, the same answers every time. A call
//! takes the first matching answer that is not used up; a repeated call gets the same answer.

use super::count_usage;
use super::failure::UNAVAILABLE;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tandem_record::{
    EffectId, ErrorInfo, MAX_NESTING, ModelAnswer, ModelRequest, ModelRole, ModelStop, nests_deeper,
};

/// Limit of answers in one script.
const MAX_ANSWERS: usize = 1_000;
/// Longest delay of an answer.
const MAX_DELAY_MS: u64 = 60_000;
/// Limit of calls whose answers are remembered.
const MAX_TRACKED_CALLS: usize = 10_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    answers: Vec<ScriptedAnswer>,
    #[serde(default)]
    otherwise: Option<ScriptedAnswer>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ScriptedAnswer {
    #[serde(default)]
    when: When,
    text: Option<String>,
    structured: Option<Value>,
    fail: Option<String>,
    tool_calls: Option<Value>,
    /// 0 means unlimited.
    #[serde(default = "once")]
    times: u32,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    purpose: Option<Purpose>,
    contains: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Purpose {
    Chat,
    Router,
    Extract,
}

fn once() -> u32 {
    1
}

/// What is wrong with a script.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if nests_deeper(text.as_bytes(), MAX_NESTING) {
            let message = format!("a script nests at most {MAX_NESTING} levels deep");
            return Err(ScriptError(message));
        }
        let script: Self = serde_json::from_str(text).map_err(|e| ScriptError(e.to_string()))?;
        if script.answers.len() > MAX_ANSWERS {
            let message = format!("a script has at most {MAX_ANSWERS} answers");
            return Err(ScriptError(message));
        }
        let all_answers = script.answers.iter().chain(&script.otherwise).enumerate();
        for (at, answer) in all_answers {
            let what = [
                answer.text.is_some(),
                answer.structured.is_some(),
                answer.fail.is_some(),
            ];
            let problem = if answer.tool_calls.is_some() {
                "toolCalls: nodes of this host offer no tools to a model"
            } else if what.iter().filter(|given| **given).count() != 1 {
                "needs exactly one of text, structured and fail"
            } else if answer.delay_ms > MAX_DELAY_MS {
                "delayMs: at most 60000"
            } else {
                continue;
            };
            return Err(ScriptError(format!("answer {at}: {problem}")));
        }
        Ok(script)
    }
}

impl ScriptedAnswer {
    fn fits(&self, purpose: Purpose, text: &str) -> bool {
        let when = &self.when;
        when.purpose.is_none_or(|expected| expected == purpose)
            && when
                .contains
                .as_ref()
                .is_none_or(|part| text.contains(part))
    }

    fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ErrorInfo> {
        if let Some(why) = &self.fail {
            let message = format!("The script of `{}` fails: {why}.", request.provider);
            return Err(ErrorInfo::new(UNAVAILABLE, message).retryable());
        }
        let structured = self.structured.as_ref().map(Value::to_string);
        let text = self.text.clone().or(structured).unwrap_or_default();
        Ok(ModelAnswer {
            usage: Some(count_usage(request, &text)),
            text: Some(text),
            data: self.structured.clone(),
            stop: ModelStop::End,
            refusal: None,
        })
    }
}

pub(super) struct ScriptedModel {
    script: Script,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    used: HashMap<usize, u32>,
    /// The answer each call got.
    given: HashMap<EffectId, Option<usize>>,
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
        let chosen = self.choose(request, effect);
        let answer = match chosen {
            Some(at) => Some(&self.script.answers[at]),
            None => self.script.otherwise.as_ref(),
        };
        let Some(answer) = answer else {
            let message = format!("The script of `{}` has no answer left.", request.provider);
            return Err(ErrorInfo::new(UNAVAILABLE, message));
        };
        if answer.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
        }
        answer.answer(request)
    }

    /// The index of the answer; `None` when nothing matches any more.
    fn choose(&self, request: &ModelRequest, effect: &EffectId) -> Option<usize> {
        let mut progress = self.progress.lock();
        if let Some(before) = progress.given.get(effect) {
            return *before;
        }
        let purpose = match request.schema {
            Some(_) => Purpose::Extract,
            None => Purpose::Chat,
        };
        let text = current_text(request);
        let left = |at: &usize, answer: &ScriptedAnswer| {
            answer.times == 0 || progress.used.get(at).copied().unwrap_or(0) < answer.times
        };
        let mut answers = self.script.answers.iter().enumerate();
        let found = answers.find(|(at, answer)| answer.fits(purpose, &text) && left(at, answer));
        let found = found.map(|(at, _)| at);
        if let Some(at) = found {
            *progress.used.entry(at).or_default() += 1;
        }
        // A failed call may be repeated and must then get the next answer.
        let fails = found.is_some_and(|at| self.script.answers[at].fail.is_some());
        if !fails {
            if progress.given.len() >= MAX_TRACKED_CALLS {
                progress.given.clear();
            }
            progress.given.insert(effect.clone(), found);
        }
        found
    }
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
