//! Reads what code threw: which failure it is, its fields, and where in the author's file it was made.

use crate::copy::copy;
use crate::failure::{ErrorData, FailureCode, ScriptFailure, SourcePosition};
use crate::realm::{Scope, Shared, Stop};
use rquickjs::{Error, Object, Value as JsValue};
use serde_json::{Map, Value};

/// How errors of `bounds.js` begin.
const BUILT_IN_LIMIT: &str = "limit of the sandbox: ";

impl<'js> Scope<'js> {
    pub(crate) fn failure_of_stop(&self, stop: Stop) -> ScriptFailure {
        match stop {
            Stop::Failure(failure) => failure,
            Stop::Engine(Error::Exception) => self.failure_of(self.ctx.catch()),
            Stop::Engine(Error::Allocation) => out_of_memory(&self.shared),
            Stop::Engine(other) => ScriptFailure::new(FailureCode::Exception, other.to_string()),
        }
    }

    /// `thrown` may be anything, and reading it may throw again.
    pub(crate) fn failure_of(&self, thrown: JsValue<'js>) -> ScriptFailure {
        if let Some(broken) = limit_of(&self.shared, &thrown) {
            let object = thrown.as_object();
            let position = object.and_then(|object| self.position_of(object));
            return ScriptFailure { position, ..broken };
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

/// The limit that something thrown stands for.
pub(crate) fn limit_of(shared: &Shared, thrown: &JsValue<'_>) -> Option<ScriptFailure> {
    // The interpreter throws null when it has no memory left for an error object. Code that fills the heap
    // so completely runs long enough to be looked at; `throw null` of an author usually does not.
    if thrown.is_null() {
        return shared.was_looked_at().then(|| out_of_memory(shared));
    }
    let error = thrown.as_object()?;
    // Reading it may run code of the author, and throw.
    let text = |name: &str| {
        let read = error.get::<_, String>(name);
        read.inspect_err(|_| drop(error.ctx().catch())).ok()
    };
    let name = text("name")?;
    if name != "InternalError" && name != "RangeError" {
        return None;
    }
    let message = text("message")?;
    match message.as_str() {
        "out of memory" | "string too long" | "invalid string length" => {
            Some(out_of_memory(shared))
        }
        "Maximum call stack size exceeded" | "stack overflow" => {
            let bytes = shared.limits.stack_bytes;
            let message = format!("the code needs more than {bytes} bytes of stack");
            Some(ScriptFailure::new(FailureCode::FlowLimit, message))
        }
        message if message.starts_with(BUILT_IN_LIMIT) => {
            Some(ScriptFailure::new(FailureCode::FlowLimit, message))
        }
        _ => None,
    }
}

fn out_of_memory(shared: &Shared) -> ScriptFailure {
    let bytes = shared.limits.heap_bytes;
    let message = format!("the code needs more than {bytes} bytes of heap");
    ScriptFailure::new(FailureCode::FlowLimit, message)
}
