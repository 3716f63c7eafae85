//! A script of answers, for models without a key and without network. A call takes the first
//! matching answer that is not used up. Which answers are used up is plain data that the caller
//! keeps.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fmt::Write as _;
use tandem_record::conversation::ModelPurpose;
use tandem_record::{EffectId, MAX_NESTING, nests_deeper};

/// Limit of answers in one script.
const MAX_ANSWERS: usize = 1_000;
/// Longest delay of an answer.
const MAX_DELAY_MS: u64 = 60_000;
/// Limit of calls whose answers are remembered.
const MAX_TRACKED_CALLS: usize = 256;

#[derive(Clone, Debug)]
pub struct Script {
    answers: Vec<ScriptedAnswer>,
    otherwise: Option<ScriptedAnswer>,
    /// Identifies the text it was read from.
    hash: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptDocument {
    answers: Vec<ScriptedAnswer>,
    #[serde(default)]
    otherwise: Option<ScriptedAnswer>,
}

/// One answer of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScriptedAnswer {
    #[serde(default)]
    when: When,
    pub text: Option<String>,
    pub structured: Option<Value>,
    /// Why the call fails.
    pub fail: Option<String>,
    pub tool_calls: Option<Vec<ScriptedToolCall>>,
    /// 0 means unlimited.
    #[serde(default = "once")]
    times: u32,
    #[serde(default)]
    pub delay_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedToolCall {
    pub name: String,
    #[serde(default = "no_args")]
    pub args: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct When {
    purpose: Option<ModelPurpose>,
    contains: Option<TextParts>,
    after_tool: Option<String>,
}

/// Parts of a text, one of which is enough.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum TextParts {
    One(String),
    Any(Vec<String>),
}

impl TextParts {
    /// Case makes no difference.
    fn are_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let is_in = |part: &String| text.contains(&part.to_lowercase());
        match self {
            Self::One(part) => is_in(part),
            Self::Any(parts) => parts.iter().any(is_in),
        }
    }
}

/// What an answer is chosen by.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedCall<'a> {
    pub purpose: ModelPurpose,
    /// The text of the user that is being answered.
    pub user_text: &'a str,
    /// The tool whose result the call hands back.
    pub after_tool: Option<&'a str>,
}

fn once() -> u32 {
    1
}

fn no_args() -> Value {
    Value::Object(serde_json::Map::new())
}

/// What is wrong with a script.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

/// Which answer of a script a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptChoice {
    /// The answer at this place of `answers`.
    Answer(usize),
    Otherwise,
    /// The script has no answer left.
    Nothing,
}

impl Script {
    /// Reads the script of an agent.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if nests_deeper(text.as_bytes(), MAX_NESTING) {
            let message = format!("a script nests at most {MAX_NESTING} levels deep");
            return Err(ScriptError(message));
        }
        let document: ScriptDocument =
            serde_json::from_str(text).map_err(|e| ScriptError(e.to_string()))?;
        if document.answers.len() > MAX_ANSWERS {
            let message = format!("a script has at most {MAX_ANSWERS} answers");
            return Err(ScriptError(message));
        }
        let script = Self {
            answers: document.answers,
            otherwise: document.otherwise,
            hash: hex(&Sha256::digest(text)),
        };
        script.check(ScriptedAnswer::problem)?;
        Ok(script)
    }

    /// Reads the script of a provider for nodes, which offer no tools to a model.
    pub fn parse_for_nodes(text: &str) -> Result<Self, ScriptError> {
        let script = Self::parse(text)?;
        script.check(|answer| {
            let has_calls = answer.tool_calls.is_some();
            has_calls.then_some("toolCalls: nodes of this host offer no tools to a model")
        })?;
        Ok(script)
    }

    fn check(
        &self,
        problem: impl Fn(&ScriptedAnswer) -> Option<&'static str>,
    ) -> Result<(), ScriptError> {
        let mut all = self.answers.iter().chain(&self.otherwise).enumerate();
        match all.find_map(|(at, answer)| Some((at, problem(answer)?))) {
            Some((at, problem)) => Err(ScriptError(format!("answer {at}: {problem}"))),
            None => Ok(()),
        }
    }

    /// The answer to a call. `used` has the number of calls that each answer was given to; missing
    /// ones are 0.
    pub fn choose(&self, used: &[u32], call: &ScriptedCall<'_>) -> ScriptChoice {
        let is_left = |at: usize, answer: &ScriptedAnswer| {
            answer.times == 0 || used.get(at).copied().unwrap_or(0) < answer.times
        };
        let mut answers = self.answers.iter().enumerate();
        let found = answers.find(|(at, answer)| answer.fits(call) && is_left(*at, answer));
        match (found, &self.otherwise) {
            (Some((at, _)), _) => ScriptChoice::Answer(at),
            (None, Some(_)) => ScriptChoice::Otherwise,
            (None, None) => ScriptChoice::Nothing,
        }
    }

    /// The chosen answer; `None` for [`ScriptChoice::Nothing`].
    pub fn answer(&self, choice: ScriptChoice) -> Option<&ScriptedAnswer> {
        match choice {
            ScriptChoice::Answer(at) => self.answers.get(at),
            ScriptChoice::Otherwise => self.otherwise.as_ref(),
            ScriptChoice::Nothing => None,
        }
    }
}

impl ScriptedAnswer {
    fn problem(&self) -> Option<&'static str> {
        let (text, structured) = (self.text.is_some(), self.structured.is_some());
        let calls = self.tool_calls.as_ref().is_some_and(|c| !c.is_empty());
        if text && structured {
            Some("has text and structured; one of them is the answer")
        } else if self.fail.is_some() && (text || structured || calls) {
            Some("fails and has an answer")
        } else if self.fail.is_none() && !text && !structured && !calls {
            Some("needs one of text, structured, toolCalls and fail")
        } else if self.delay_ms > MAX_DELAY_MS {
            Some("delayMs: at most 60000")
        } else {
            None
        }
    }

    fn fits(&self, call: &ScriptedCall<'_>) -> bool {
        let When {
            purpose,
            contains,
            after_tool,
        } = &self.when;
        purpose.is_none_or(|expected| expected == call.purpose)
            && contains
                .as_ref()
                .is_none_or(|parts| parts.are_in(call.user_text))
            && after_tool
                .as_ref()
                .is_none_or(|tool| call.after_tool == Some(tool.as_str()))
    }
}

/// How far a script is used up. Plain data, so that it can be stored across restarts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptProgress {
    /// Of the script that the counts belong to. Another script starts anew.
    script: String,
    used: Vec<u32>,
    /// What the last calls got, oldest first. A call that is repeated, for instance after a crash,
    /// gets the same answer.
    given: VecDeque<(EffectId, ScriptChoice)>,
}

impl ScriptProgress {
    /// Chooses the answer to a call and counts it.
    pub fn take(
        &mut self,
        script: &Script,
        call: &EffectId,
        asked: &ScriptedCall<'_>,
    ) -> ScriptChoice {
        if self.script != script.hash {
            *self = Self {
                script: script.hash.clone(),
                ..Self::default()
            };
        }
        if let Some((_, before)) = self.given.iter().find(|(given, _)| given == call) {
            return *before;
        }
        let choice = script.choose(&self.used, asked);
        if let ScriptChoice::Answer(at) = choice {
            if self.used.len() <= at {
                self.used.resize(at + 1, 0);
            }
            self.used[at] = self.used[at].saturating_add(1);
        }
        // A failed call may be repeated and must then get the next answer.
        let fails = script.answer(choice).is_none_or(|a| a.fail.is_some());
        if !fails {
            self.given.push_back((call.clone(), choice));
            if self.given.len() > MAX_TRACKED_CALLS {
                self.given.pop_front();
            }
        }
        choice
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
