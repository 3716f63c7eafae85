//! Copies a value out of a realm as JSON, within bounds.
//!
//! The value belongs to code that is not trusted: reading a property may run a getter or a proxy trap, and
//! the value may be cyclic, deep or huge. Functions become `{"$fn": true}`, Standard Schemas
//! `{"$standard": true, …}`; otherwise the rules are those of `JSON.stringify`.

use rquickjs::function::This;
use rquickjs::object::Filter;
use rquickjs::{Ctx, Function, Object, Type, Value as JsValue};
use serde_json::{Map, Number, Value, json};

const MAX_DEPTH: usize = 64;
/// Properties whose order is kept.
const MAX_PROPERTIES: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyError {
    /// More bytes than allowed.
    TooLarge(usize),
    /// Cannot be written as JSON, and why.
    NotData(String),
    /// Reading the value threw. The exception is pending in the context.
    Threw,
}

impl CopyError {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::TooLarge(limit) => format!("the value is larger than {limit} bytes"),
            Self::NotData(problem) => problem.clone(),
            Self::Threw => "reading the value threw an error".to_owned(),
        }
    }
}

impl From<rquickjs::Error> for CopyError {
    fn from(_: rquickjs::Error) -> Self {
        Self::Threw
    }
}

/// `None` is a value that JSON leaves out: `undefined` or a symbol.
pub(crate) fn copy<'js>(
    ctx: &Ctx<'js>,
    value: &JsValue<'js>,
    max_bytes: usize,
) -> Result<Option<Value>, CopyError> {
    let driver = super::realm::driver(ctx);
    let mut copier = Copier {
        standard_of: driver.get("standardOf")?,
        kind_of: driver.get("kindOf")?,
        well_formed: driver.get("wellFormed")?,
        path: Vec::new(),
        is_json_schema: false,
        left: max_bytes,
        max_bytes,
    };
    copier.copy(value)
}

struct Copier<'js> {
    standard_of: Function<'js>,
    kind_of: Function<'js>,
    well_formed: Function<'js>,
    /// The objects around the current one, to find cycles.
    path: Vec<Object<'js>>,
    /// Libraries attach `~standard` to JSON Schemas too; below one everything is data.
    is_json_schema: bool,
    left: usize,
    max_bytes: usize,
}

impl<'js> Copier<'js> {
    fn copy(&mut self, value: &JsValue<'js>) -> Result<Option<Value>, CopyError> {
        self.spend(2)?;
        let copied = match value.type_of() {
            Type::Undefined | Type::Uninitialized | Type::Symbol => return Ok(None),
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => number(value.as_number().unwrap_or_default()),
            Type::String => Value::String(self.text(value)?),
            Type::BigInt => {
                return Err(CopyError::NotData(
                    "a BigInt is not JSON; use a number or a string".to_owned(),
                ));
            }
            _ => return self.object(value),
        };
        self.spend(match &copied {
            Value::String(text) => text.len(),
            _ => 4,
        })?;
        Ok(Some(copied))
    }

    fn object(&mut self, value: &JsValue<'js>) -> Result<Option<Value>, CopyError> {
        let Some(object) = value.as_object() else {
            return Err(CopyError::NotData(format!(
                "a {} is not JSON",
                value.type_name()
            )));
        };
        if self.path.len() == MAX_DEPTH {
            return Err(CopyError::NotData(format!(
                "the value is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        if self.path.contains(object) {
            return Err(CopyError::NotData(
                "the value contains itself; an effect is plain data".to_owned(),
            ));
        }
        self.path.push(object.clone());
        let copied = self.contents(value, object);
        self.path.pop();
        copied
    }

    fn contents(
        &mut self,
        value: &JsValue<'js>,
        object: &Object<'js>,
    ) -> Result<Option<Value>, CopyError> {
        if !self.is_json_schema {
            let standard: JsValue = self.standard_of.call((value.clone(),))?;
            if let Some(standard) = standard.as_object() {
                return self.schema(object, standard).map(Some);
            }
        }
        if value.is_function() {
            self.spend(16)?;
            let kind: String = self.kind_of.call((value.clone(),))?;
            return Ok(Some(if kind.ends_with("generator") {
                json!({"$fn": true, "generator": true})
            } else {
                json!({"$fn": true})
            }));
        }
        let to_json: JsValue = object.get("toJSON")?;
        if let Some(to_json) = to_json.as_function() {
            let replaced: JsValue = to_json.call((This(value.clone()),))?;
            return self.copy(&replaced);
        }
        if value.is_array() {
            return self.array(object).map(Some);
        }
        let mut fields = Map::new();
        for key in object.own_keys::<rquickjs::String>(Filter::new().string().enum_only()) {
            let key = key?;
            let item: JsValue = object.get(key.clone().into_value())?;
            let name = self.text(&key.into_value())?;
            self.spend(name.len() + 4)?;
            if let Some(item) = self.copy(&item)? {
                fields.insert(name, item);
            }
        }
        Ok(Some(Value::Object(fields)))
    }

    fn array(&mut self, object: &Object<'js>) -> Result<Value, CopyError> {
        let length: f64 = object.get("length")?;
        // Before anything is read: an array may be sparse and pretend any length.
        if length > self.left as f64 {
            return Err(CopyError::TooLarge(self.max_bytes));
        }
        let mut items = Vec::new();
        for index in 0..length as u32 {
            let item: JsValue = object.get(index)?;
            items.push(self.copy(&item)?.unwrap_or(Value::Null));
        }
        Ok(Value::Array(items))
    }

    /// A Standard Schema stays in the realm. What leaves it is its vendor and, when the library can
    /// say it, its JSON Schema.
    fn schema(&mut self, schema: &Object<'js>, standard: &Object<'js>) -> Result<Value, CopyError> {
        let vendor: JsValue = standard.get("vendor")?;
        let mut marker = Map::from_iter([("$standard".to_owned(), Value::Bool(true))]);
        if let Some(vendor) = self.copy(&vendor)? {
            marker.insert("vendor".to_owned(), vendor);
        }
        // A library may refuse to convert; the schema can still validate.
        let converted = json_schema(schema, standard).unwrap_or_else(|_| {
            schema.ctx().catch();
            None
        });
        if let Some(converted) = converted {
            self.is_json_schema = true;
            let copied = self.copy(&converted);
            self.is_json_schema = false;
            if let Some(copied) = copied? {
                marker.insert("jsonSchema".to_owned(), copied);
            }
        }
        Ok(Value::Object(marker))
    }

    fn text(&self, value: &JsValue<'js>) -> Result<String, CopyError> {
        let text = value.as_string().expect("the type was checked");
        match text.to_string() {
            Ok(text) => Ok(text),
            // A lone surrogate has no UTF-8; it becomes U+FFFD.
            Err(rquickjs::Error::Utf8(_)) => Ok(self.well_formed.call((value.clone(),))?),
            Err(_) => Err(CopyError::Threw),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), CopyError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return Err(CopyError::TooLarge(self.max_bytes)),
        }
        Ok(())
    }
}

/// The names of a schema's properties as their author wrote them: objects lose their order when they are copied.
/// `None` when the schema has none, or cannot say.
pub(crate) fn property_order<'js>(ctx: &Ctx<'js>, schema: &JsValue<'js>) -> Option<Vec<String>> {
    let names = read_property_order(ctx, schema);
    names.unwrap_or_else(|_| {
        ctx.catch();
        None
    })
}

fn read_property_order<'js>(
    ctx: &Ctx<'js>,
    schema: &JsValue<'js>,
) -> rquickjs::Result<Option<Vec<String>>> {
    let standard_of: Function = super::realm::driver(ctx).get("standardOf")?;
    let standard: JsValue = standard_of.call((schema.clone(),))?;
    let shape = match (schema.as_object(), standard.as_object()) {
        (Some(schema), Some(standard)) => json_schema(schema, standard)?,
        _ => Some(schema.clone()),
    };
    let Some(shape) = shape.as_ref().and_then(JsValue::as_object) else {
        return Ok(None);
    };
    let properties: JsValue = shape.get("properties")?;
    let Some(properties) = properties.as_object() else {
        return Ok(None);
    };
    let names = properties.own_keys::<String>(Filter::new().string().enum_only());
    names
        .take(MAX_PROPERTIES)
        .collect::<rquickjs::Result<_>>()
        .map(Some)
}

fn json_schema<'js>(
    schema: &Object<'js>,
    standard: &Object<'js>,
) -> rquickjs::Result<Option<JsValue<'js>>> {
    let converter: JsValue = standard.get("jsonSchema")?;
    if let Some(converter) = converter.as_object() {
        let input: JsValue = converter.get("input")?;
        if let Some(input) = input.as_function() {
            let options = Object::new(schema.ctx().clone())?;
            options.set("target", "draft-2020-12")?;
            return input.call((This(converter.clone()), options)).map(Some);
        }
    }
    let convert: JsValue = schema.get("toJSONSchema")?;
    match convert.as_function() {
        Some(convert) => convert.call((This(schema.clone()),)).map(Some),
        None => Ok(None),
    }
}

/// Whole numbers stay whole, so that `1` is not written as `1.0`.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Value::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
