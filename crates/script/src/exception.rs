//! Reads what code threw: which failure it is, its fields, and where in the author's file it was made.

use crate::copy::copy;
use crate::failure::{ErrorData, FailureCode, ScriptFailure, SourcePosition};
use crate::realm::{Scope, Stop};
use rquickjs::{Error, Object, Value as JsValue};
use serde_json::{Map, Value};

/// How errors of `bounds.js` begin.
const BUILT_IN_LIMIT: &str = "limit of the sandbox: ";

impl<'js> Scope<'js> {
    pub(crate) fn failure_of_stop(&self, stop: Stop) -> ScriptFailure {
        match stop {
            Stop::Failure(failure) => failure,
            Stop::Engine(Error::Exception) => self.failure_of(self.ctx.catch()),
            Stop::Engine(Error::Allocation) => self.out_of_memory(),
            Stop::Engine(other) => ScriptFailure::new(FailureCode::Exception, other.to_string()),
        }
    }

    /// `thrown` may be anything, and reading it may throw again.
    pub(crate) fn failure_of(&self, thrown: JsValue<'js>) -> ScriptFailure {
        // The interpreter throws null when it has no memory left for an error object. Code that fills the heap
        // so completely runs long enough to be looked at; `throw null` of an author usually does not.
        if thrown.is_null() && self.shared.was_looked_at() {
            return self.out_of_memory();
        }
        let Some(object) = thrown.as_object() else {
            let message = match copy(&self.ctx, &thrown, self.shared.limits.value_bytes) {
                Ok(Some(Value::String(text))) => text,
                Ok(Some(value)) => value.to_string(),
                _ => thrown.type_name().to_owned(),
            };
            return ScriptFailure::new(FailureCode::Exception, message);
        };
        let error = self.error_of(object);
        match (error.name.as_str(), error.message.as_str()) {
            (
                "InternalError" | "RangeError",
                "out of memory" | "string too long" | "invalid string length",
            ) => {
                return self.out_of_memory();
            }
            (
                "RangeError" | "InternalError",
                "Maximum call stack size exceeded" | "stack overflow",
            ) => {
                return ScriptFailure {
                    position: self.position_of(object),
                    ..ScriptFailure::new(
                        FailureCode::FlowLimit,
                        format!(
                            "the code needs more than {} bytes of stack",
                            self.shared.limits.stack_bytes
                        ),
                    )
                };
            }
            ("RangeError", message) if message.starts_with(BUILT_IN_LIMIT) => {
                return ScriptFailure {
                    position: self.position_of(object),
                    ..ScriptFailure::new(FailureCode::FlowLimit, message)
                };
            }
            _ => {}
        }
        let is_host_error = self
            .driver("isHostError")
            .and_then(|check| check.call::<_, bool>((thrown.clone(),)))
            .unwrap_or(false);
        let message = match &error.code {
            Some(code) if is_host_error => format!("{code}: {}", error.message),
            _ if error.name == "Error" || error.name.is_empty() => error.message.clone(),
            _ => format!("{}: {}", error.name, error.message),
        };
        ScriptFailure {
            code: FailureCode::Exception,
            message,
            position: self.position_of(object),
            error: Some(Box::new(error)),
        }
    }

    fn out_of_memory(&self) -> ScriptFailure {
        let message = format!(
            "the code needs more than {} bytes of heap",
            self.shared.limits.heap_bytes
        );
        ScriptFailure::new(FailureCode::FlowLimit, message)
    }

    fn error_of(&self, object: &Object<'js>) -> ErrorData {
        let fields = match copy(&self.ctx, object.as_value(), self.shared.limits.value_bytes) {
            Ok(Some(Value::Object(fields))) => fields,
            _ => {
                self.ctx.catch();
                Map::new()
            }
        };
        let mut fields: Map<String, Value> = fields
            .into_iter()
            .filter(|(name, _)| !["name", "message", "stack"].contains(&name.as_str()))
            .collect();
        let code = match fields.remove("code") {
            Some(Value::String(code)) => Some(code),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        ErrorData {
            name: self.text(object, "name"),
            code,
            message: self.text(object, "message"),
            fields,
        }
    }

    fn text(&self, object: &Object<'js>, field: &str) -> String {
        let value = object.get::<_, JsValue>(field);
        let copied = value
            .map_err(Into::into)
            .and_then(|value| copy(&self.ctx, &value, self.shared.limits.value_bytes));
        match copied {
            Ok(Some(Value::String(text))) => text,
            Ok(_) => String::new(),
            Err(_) => {
                self.ctx.catch();
                String::new()
            }
        }
    }

    /// The first frame of the stack that lies in a module of the author.
    fn position_of(&self, error: &Object<'js>) -> Option<SourcePosition> {
        self.text(error, "stack").lines().find_map(|frame| {
            let frame = frame.trim().strip_prefix("at ")?;
            let place = match frame.rsplit_once('(') {
                Some((_, place)) => place.trim_end_matches(')'),
                None => frame,
            };
            let (rest, column) = place.rsplit_once(':')?;
            let (path, line) = rest.rsplit_once(':')?;
            self.set
                .original_position(path, line.parse().ok()?, column.parse().ok()?)
        })
    }
}
