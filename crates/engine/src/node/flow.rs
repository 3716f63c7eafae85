//! Flow primitives: sleeping, failing, variables, channels, loops.

use super::settings::{Setting, value};
use super::{Kind, ParseContext};
use crate::conformance::identity_hook;
use crate::expression::Expression;
use crate::value_kind::kind_of;
use serde_json::Value;
use tandem_record::Object;

/// Longest sleep accepted: a year. A longer one is probably a wrong unit.
const MAX_DELAY_MS: u64 = 366 * 24 * 3600 * 1000;
/// Maximum rounds of a loop that sets no limit.
const DEFAULT_ITERATIONS: u64 = 1000;

pub(super) const DELAY: &[Setting] = &[value("delayMs"), value("durationMs"), value("ms")];
pub(super) const FAIL: &[Setting] = &[value("code"), value("message")];
pub(super) const SET_VARIABLE: &[Setting] = &[value("name"), value("value")];
pub(super) const GET_VARIABLE: &[Setting] = &[value("name")];
pub(super) const CHANNEL_WRITE: &[Setting] = &[
    value("channelName"),
    value("reducer"),
    value("value"),
    value("ttlMs"),
    value("maxSize"),
];
pub(super) const LOOP: &[Setting] = &[
    value("times"),
    value("while"),
    value("maxIterations"),
    value("itemVariable"),
];

pub(super) fn identity(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let hook = identity_hook(config, cx)?;
    Some(hook.map_or(Kind::Passthrough, Kind::Conformance))
}

pub(super) fn delay(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let mut configured = None;
    for key in ["delayMs", "durationMs", "ms"] {
        let Some(value) = config.get(key) else {
            continue;
        };
        match millis(value) {
            Ok(ms) => configured = configured.or(Some(ms)),
            Err(message) => return cx.bad(key, message),
        }
    }
    Some(Kind::Delay { configured })
}

/// How long a delay node sleeps: run input `delaySeconds`, then the port, then its configuration.
pub(crate) fn delay_ms(
    inputs: &Object,
    run_inputs: &Object,
    configured: Option<u64>,
) -> Result<u64, String> {
    if let Some(seconds) = run_inputs.get("delaySeconds") {
        let Some(seconds) = seconds.as_f64() else {
            return Err("delaySeconds must be a number".to_owned());
        };
        return millis(&Value::from(seconds * 1000.0));
    }
    match inputs.get("delayMs") {
        Some(value) => millis(value),
        None => Ok(configured.unwrap_or(0)),
    }
}

/// A delay in milliseconds, or why the value is none.
pub(crate) fn millis(value: &Value) -> Result<u64, String> {
    let number = value.as_f64().filter(|n| n.is_finite() && *n >= 0.0);
    let Some(number) = number else {
        let kind = kind_of(value);
        return Err(format!(
            "the delay must be a number of milliseconds that is not negative; it is {kind}"
        ));
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ms = number.round() as u64;
    if ms > MAX_DELAY_MS {
        return Err(format!("a delay of {ms} ms is longer than a year"));
    }
    Ok(ms)
}

pub(super) fn fail(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let code = cx.text(config, "code")?;
    let message = cx.text(config, "message")?;
    Some(Kind::Fail {
        code: code
            .filter(|c| !c.is_empty())
            .unwrap_or_else(|| "conformance_test_failure".to_owned()),
        message: message
            .filter(|m| !m.is_empty())
            .unwrap_or_else(|| "This node always fails.".to_owned()),
    })
}

pub(super) fn set_variable(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let name = cx.required_text(config, "name")?;
    Some(Kind::SetVariable {
        name,
        value: config.get("value").cloned(),
    })
}

pub(super) fn get_variable(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let name = cx.required_text(config, "name")?;
    Some(Kind::GetVariable { name })
}

/// `core.channelWrite`.
#[derive(Debug)]
pub(crate) struct ChannelWrite {
    /// Absent in the document: the node fails when it runs.
    pub(crate) channel: Option<String>,
    pub(crate) reducer: String,
    pub(crate) value: Option<Value>,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_size: Option<usize>,
}

impl ChannelWrite {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let reducer = cx
            .text(config, "reducer")?
            .unwrap_or_else(|| "append".to_owned());
        if !crate::graph::channel::is_reducer(&reducer) {
            return cx.bad("reducer", format!("{reducer:?} is not a reducer"));
        }
        let max_size = cx.whole(config, "maxSize", 1)?;
        Some(Self {
            channel: cx.text(config, "channelName")?.filter(|c| !c.is_empty()),
            reducer,
            value: config.get("value").cloned(),
            // Zero means no TTL here, though a declaration may not use it.
            ttl_ms: cx.whole(config, "ttlMs", 0)?.filter(|ms| *ms > 0),
            max_size: max_size.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        })
    }
}

/// `core.loop`: repeats the nodes between it and the edges that lead back to it.
#[derive(Debug)]
pub(crate) struct LoopConfig {
    pub(crate) times: Option<u64>,
    pub(crate) condition: Option<Expression>,
    pub(crate) max_iterations: u64,
    /// Variable that receives the item of each round.
    pub(crate) item_variable: Option<String>,
}

impl LoopConfig {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let condition = match cx.text(config, "while")? {
            None => None,
            Some(text) => match Expression::parse(&text) {
                Ok(parsed) => Some(parsed),
                Err(e) => return cx.bad("while", e.to_string()),
            },
        };
        Some(Self {
            times: cx.whole(config, "times", 0)?,
            condition,
            max_iterations: cx
                .whole(config, "maxIterations", 1)?
                .unwrap_or(DEFAULT_ITERATIONS),
            item_variable: cx.text(config, "itemVariable")?,
        })
    }
}
