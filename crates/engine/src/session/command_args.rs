//! The arguments of a command, read by the schema of the command.

use super::Language;
use super::scalar::{self, ScalarType};
use crate::flow::{AuthorSchema, SchemaSource};
use serde_json::{Map, Value};
use tandem_schema::{MAX_WORK, Meter};

/// Words of one argument string.
const MAX_WORDS: usize = 500;
const MAX_BYTES: usize = 64 * 1024;
/// The order of properties where the order of the JSON object is lost. Written by the loader.
const PROPERTY_ORDER: &str = "propertyOrder";
/// Where the marker of a Standard Schema carries its JSON Schema, if it has one.
const MARKER_SCHEMA: &str = "jsonSchema";

pub(super) fn parse(args: &str, schema: &AuthorSchema) -> Result<Value, Vec<String>> {
    if args.len() > MAX_BYTES {
        return Err(vec![format!("has at most {MAX_BYTES} bytes")]);
    }
    let value = if args.starts_with('{') {
        serde_json::from_str(args).map_err(|error| vec![format!("not valid JSON: {error}")])?
    } else {
        Value::Object(assigned(args, shape(schema))?)
    };
    let errors = schema.errors(&value, &Meter::with_limit(MAX_WORK));
    if errors.is_empty() {
        Ok(value)
    } else {
        Err(errors)
    }
}

/// `Usage: /name <required> [optional]`.
pub(super) fn usage(name: &str, schema: &AuthorSchema) -> String {
    let shape = shape(schema);
    let required = required(shape);
    let mut line = format!("Usage: /{name}");
    for property in properties(shape) {
        let needed = required.contains(&property);
        let (open, close) = if needed { ('<', '>') } else { ('[', ']') };
        line.push(' ');
        line.push(open);
        line.push_str(property);
        line.push(close);
    }
    line
}

/// The JSON Schema that names the properties; empty when only code knows them.
fn shape(schema: &AuthorSchema) -> &Value {
    match schema.source() {
        SchemaSource::Json(schema) => schema,
        SchemaSource::Realm(marker) => &marker[MARKER_SCHEMA],
    }
}

fn texts<'a>(schema: &'a Value, name: &str) -> Vec<&'a str> {
    let list = schema[name].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn required(schema: &Value) -> Vec<&str> {
    texts(schema, "required")
}

/// Property names in their order: as the loader recorded it, else required ones first.
fn properties(schema: &Value) -> Vec<&str> {
    let Some(known) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let mut ordered: Vec<&str> = Vec::with_capacity(known.len());
    let listed = texts(schema, PROPERTY_ORDER).into_iter();
    let listed = listed.chain(required(schema));
    for name in listed.chain(known.keys().map(String::as_str)) {
        if known.contains_key(name) && !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    ordered
}

/// Words given to properties, pairs first.
fn assigned(args: &str, schema: &Value) -> Result<Map<String, Value>, Vec<String>> {
    let names = properties(schema);
    let mut given = Map::new();
    let mut positional = Vec::new();
    for word in words(args)? {
        match word.pair {
            Some(at) if is_key(&word.text[..at], &names, schema) => {
                let (key, value) = (&word.text[..at], &word.text[at + 1..]);
                if given
                    .insert(key.to_owned(), typed(value, &schema["properties"][key]))
                    .is_some()
                {
                    return Err(vec![format!("{key} is given twice")]);
                }
            }
            _ => positional.push(word.text),
        }
    }
    let open = names.into_iter().filter(|name| !given.contains_key(*name));
    let open: Vec<&str> = open.collect();
    let mut rest = positional.into_iter();
    for (i, name) in open.iter().enumerate() {
        let property = &schema["properties"][*name];
        let last = i + 1 == open.len();
        if scalar::types(property).contains(&ScalarType::List) {
            let items = rest.by_ref().map(|word| typed(&word, &property["items"]));
            let items: Vec<Value> = items.collect();
            if !items.is_empty() {
                given.insert((*name).to_owned(), Value::Array(items));
            }
        } else if let Some(mut word) = rest.next() {
            // The last text takes all that is left: people do not quote sentences.
            if last && scalar::types(property).contains(&ScalarType::Text) {
                for more in rest.by_ref() {
                    word.push(' ');
                    word.push_str(&more);
                }
            }
            given.insert((*name).to_owned(), typed(&word, property));
        }
    }
    match rest.next() {
        Some(word) => Err(vec![format!("there is no argument for {word:?}")]),
        None => Ok(given),
    }
}

/// Without known properties every name is a key, so that code can validate it.
fn is_key(name: &str, names: &[&str], schema: &Value) -> bool {
    let identifier = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    names.contains(&name) || (schema["properties"].is_null() && identifier)
}

/// A word as the type its schema wants. One that cannot be converted stays text, and the schema says
/// what is wrong with it.
fn typed(word: &str, schema: &Value) -> Value {
    let read = scalar::coerce(word, schema, Language::En, |word| match word {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    });
    let first = read.into_iter().next();
    first.unwrap_or_else(|| Value::String(word.to_owned()))
}

struct Word {
    text: String,
    /// Where an unquoted `=` stands.
    pair: Option<usize>,
}

/// Splits on spaces outside of quotes. A backslash inside quotes takes the next character as it is.
fn words(args: &str) -> Result<Vec<Word>, Vec<String>> {
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut chars = args.chars();
    while let Some(c) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let current = word.get_or_insert_with(|| Word {
            text: String::new(),
            pair: None,
        });
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) if c == '\\' => current.text.extend(chars.next()),
            Some(_) => current.text.push(c),
            // A quote inside a word is an apostrophe.
            None if matches!(c, '"' | '\'') && starts_value(current) => quote = Some(c),
            None => {
                if c == '=' && current.pair.is_none() {
                    current.pair = Some(current.text.len());
                }
                current.text.push(c);
            }
        }
        if words.len() > MAX_WORDS {
            return Err(vec![format!("has at most {MAX_WORDS} words")]);
        }
    }
    if quote.is_some() {
        return Err(vec!["a quote is not closed".to_owned()]);
    }
    words.extend(word);
    Ok(words)
}

fn starts_value(word: &Word) -> bool {
    word.text.is_empty() || word.pair.is_some_and(|at| at + 1 == word.text.len())
}
