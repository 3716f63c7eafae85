//! The parts of a schema and how they apply each other: to the same value, or to its children.
//!
//! Reads the keywords of all drafts. A keyword that a draft ignores makes the estimate larger,
//! never smaller.

use crate::limits::{Budget, KEYWORD, MAX_SCHEMA_DEPTH};
use crate::pattern;
use crate::refusal::SchemaRefusal;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// How a part is applied to the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPlace {
    /// Its errors are errors of the whole.
    Plain,
    /// Tried first. Its errors are collected by applying it again.
    Tried,
}

/// One part of a schema.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// JSON pointer below the schema.
    pub(crate) at: String,
    /// Work for a value, for a byte of text, and for a byte of a member's name.
    pub(crate) value_work: u64,
    pub(crate) text_work: u64,
    pub(crate) name_work: u64,
    /// Work for every value below, and an eighth of it for every byte, to compare them.
    pub(crate) below_work: u64,
    pub(crate) in_place: Vec<(usize, InPlace)>,
    /// Members by name: only one of these applies to a child.
    pub(crate) named: Vec<usize>,
    /// Other schemas of members: all may apply to the same child.
    pub(crate) members: Vec<usize>,
    /// Items by position: only one of these applies to a child.
    pub(crate) placed: Vec<usize>,
    pub(crate) items: Vec<usize>,
    /// Needs to know which children its other keywords evaluated, which applies those again.
    pub(crate) unevaluated: bool,
}

pub(crate) struct Graph {
    /// The first is the whole schema.
    pub(crate) parts: Vec<Part>,
    pub(crate) patterns: usize,
    pub(crate) pattern_bytes: usize,
}

impl Graph {
    pub(crate) fn read(schema: &Value, budget: &mut Budget) -> Result<Self, SchemaRefusal> {
        budget.take_schema_bytes(size(schema, 0)?)?;
        let mut reader = Reader {
            root: schema,
            base: base(schema),
            anchors: HashMap::new(),
            part_by_address: HashMap::new(),
            waiting: Vec::new(),
            patterns: BTreeMap::new(),
            graph: Self {
                parts: Vec::new(),
                patterns: 0,
                pattern_bytes: 0,
            },
            budget,
        };
        find_anchors(schema, &mut reader.anchors);
        reader.part(schema, String::new())?;
        while let Some((index, schema)) = reader.waiting.pop() {
            reader.read(index, schema)?;
        }
        reader.measure_patterns()?;
        Ok(reader.graph)
    }
}

/// Approximate size of the schema's text in bytes.
fn size(value: &Value, depth: usize) -> Result<usize, SchemaRefusal> {
    if depth > MAX_SCHEMA_DEPTH {
        let message = format!("the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels");
        return Err(SchemaRefusal::new("", message));
    }
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 6,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => {
            let mut sum = 2;
            for item in items {
                sum += size(item, depth + 1)?;
            }
            sum
        }
        Value::Object(members) => {
            let mut sum = 2;
            for (name, member) in members {
                sum += name.len() + 4 + size(member, depth + 1)?;
            }
            sum
        }
    })
}

/// The identifier of the whole schema, without a fragment.
fn base(schema: &Value) -> Option<&str> {
    let id = schema.get("$id").or_else(|| schema.get("id"))?.as_str()?;
    let id = id.split('#').next().unwrap_or_default();
    (!id.is_empty()).then_some(id)
}

/// Names that references may use instead of a pointer. Several places may share a name.
fn find_anchors<'a>(value: &'a Value, anchors: &mut HashMap<&'a str, Vec<&'a Value>>) {
    match value {
        Value::Object(members) => {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    anchors.entry(name).or_default().push(value);
                }
            }
            for key in ["$id", "id"] {
                let id = members.get(key).and_then(Value::as_str);
                if let Some(name) = id.and_then(|id| id.strip_prefix('#')) {
                    anchors.entry(name).or_default().push(value);
                }
            }
            members.values().for_each(|m| find_anchors(m, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| find_anchors(item, anchors)),
        _ => {}
    }
}

struct Reader<'a, 'b> {
    root: &'a Value,
    base: Option<&'a str>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// Parts by the address of their schema.
    part_by_address: HashMap<*const Value, usize>,
    waiting: Vec<(usize, &'a Value)>,
    /// Parts that use each pattern: on text, and on names of members.
    patterns: BTreeMap<&'a str, Uses>,
    graph: Graph,
    budget: &'b mut Budget,
}

#[derive(Default)]
struct Uses {
    on_text: Vec<usize>,
    on_names: Vec<usize>,
}

impl<'a> Reader<'a, '_> {
    /// The part of a schema; it is read later if it is new.
    fn part(&mut self, schema: &'a Value, at: String) -> Result<usize, SchemaRefusal> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.part_by_address.get(&address) {
            return Ok(*known);
        }
        self.budget.take_subschema(&at)?;
        let index = self.graph.parts.len();
        self.part_by_address.insert(address, index);
        self.graph.parts.push(Part {
            at,
            value_work: KEYWORD,
            ..Part::default()
        });
        self.waiting.push((index, schema));
        Ok(index)
    }

    fn read(&mut self, index: usize, schema: &'a Value) -> Result<(), SchemaRefusal> {
        let Some(keywords) = schema.as_object() else {
            return Ok(());
        };
        let at = self.graph.parts[index].at.clone();
        self.refuse_embedded(index, keywords, &at)?;
        for (keyword, value) in keywords {
            let at = below(&at, keyword);
            self.keyword(index, keyword, value, at)?;
        }
        Ok(())
    }

    /// Refuses a schema with an identifier of its own: it would change what references below it
    /// mean.
    fn refuse_embedded(
        &self,
        index: usize,
        keywords: &Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaRefusal> {
        let id = keywords.get("$id").or_else(|| {
            let old = self.root.get("$schema").and_then(Value::as_str);
            old.filter(|draft| draft.contains("draft-04"))?;
            keywords.get("id")
        });
        let id = id.and_then(Value::as_str);
        if index > 0 && id.is_some_and(|id| !id.starts_with('#')) {
            let message = "a schema inside another has no identifier of its own here; remove \
                           \"$id\" and refer to it as \"#/$defs/…\"";
            return Err(SchemaRefusal::new(at, message));
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        index: usize,
        keyword: &str,
        value: &'a Value,
        at: String,
    ) -> Result<(), SchemaRefusal> {
        let part = &mut self.graph.parts[index];
        part.value_work = part.value_work.saturating_add(KEYWORD);
        match keyword {
            "$ref" | "$recursiveRef" | "$dynamicRef" => self.reference(index, value, at)?,
            "allOf" => self.list(index, value, &at, InPlace::Plain)?,
            "anyOf" | "oneOf" => self.list(index, value, &at, InPlace::Tried)?,
            "not" | "if" => self.in_place(index, value, at, InPlace::Tried)?,
            "then" | "else" => self.in_place(index, value, at, InPlace::Plain)?,
            "dependentSchemas" | "dependencies" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    // The older keyword also lists names.
                    if schema.is_array() {
                        self.add_value_work(index, size_work(schema));
                    } else {
                        self.in_place(index, schema, below(&at, name), InPlace::Plain)?;
                    }
                }
            }
            "properties" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    let child = self.part(schema, below(&at, name))?;
                    self.graph.parts[index].named.push(child);
                    self.add_value_work(index, KEYWORD);
                }
            }
            "patternProperties" => {
                for (pattern, schema) in value.as_object().into_iter().flatten() {
                    let at = below(&at, pattern);
                    self.budget.take_pattern(&at)?;
                    self.graph.patterns += 1;
                    let uses = self.patterns.entry(pattern).or_default();
                    uses.on_names.push(index);
                    let child = self.part(schema, at)?;
                    self.graph.parts[index].members.push(child);
                }
            }
            "additionalProperties" | "propertyNames" => {
                let child = self.part(value, at)?;
                self.graph.parts[index].members.push(child);
            }
            "unevaluatedProperties" => {
                let child = self.part(value, at)?;
                let part = &mut self.graph.parts[index];
                part.members.push(child);
                part.unevaluated = true;
            }
            "unevaluatedItems" => {
                let child = self.part(value, at)?;
                let part = &mut self.graph.parts[index];
                part.items.push(child);
                part.unevaluated = true;
            }
            "items" | "prefixItems" if value.is_array() => {
                for (i, schema) in value.as_array().into_iter().flatten().enumerate() {
                    let child = self.part(schema, below(&at, &i.to_string()))?;
                    self.graph.parts[index].placed.push(child);
                    self.add_value_work(index, KEYWORD);
                }
            }
            "items" | "additionalItems" | "contains" => {
                let child = self.part(value, at)?;
                self.graph.parts[index].items.push(child);
            }
            "pattern" => {
                if let Some(pattern) = value.as_str() {
                    self.budget.take_pattern(&at)?;
                    self.graph.patterns += 1;
                    self.patterns
                        .entry(pattern)
                        .or_default()
                        .on_text
                        .push(index);
                }
            }
            "enum" | "const" | "required" | "dependentRequired" | "type" => {
                self.add_value_work(index, size_work(value));
            }
            "uniqueItems" => {
                // Short arrays are compared pairwise.
                self.graph.parts[index].below_work += 16 * KEYWORD;
            }
            "minLength" | "maxLength" => self.graph.parts[index].text_work += 1,
            "format" | "contentMediaType" | "contentEncoding" => {
                self.graph.parts[index].text_work += 2 * KEYWORD;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_value_work(&mut self, index: usize, work: u64) {
        let part = &mut self.graph.parts[index];
        part.value_work = part.value_work.saturating_add(work);
    }

    fn list(
        &mut self,
        index: usize,
        value: &'a Value,
        at: &str,
        how: InPlace,
    ) -> Result<(), SchemaRefusal> {
        for (i, schema) in value.as_array().into_iter().flatten().enumerate() {
            self.in_place(index, schema, below(at, &i.to_string()), how)?;
        }
        Ok(())
    }

    fn in_place(
        &mut self,
        index: usize,
        schema: &'a Value,
        at: String,
        how: InPlace,
    ) -> Result<(), SchemaRefusal> {
        let target = self.part(schema, at)?;
        self.graph.parts[index].in_place.push((target, how));
        Ok(())
    }

    fn reference(
        &mut self,
        index: usize,
        value: &'a Value,
        at: String,
    ) -> Result<(), SchemaRefusal> {
        let Some(reference) = value.as_str() else {
            return Ok(());
        };
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = decode(fragment);
        let local = document.is_empty() || Some(document) == self.base;
        let targets: Vec<&'a Value> = match &fragment {
            Some(fragment) if local && fragment.is_empty() => vec![self.root],
            Some(fragment) if local && fragment.starts_with('/') => {
                self.root.pointer(fragment).into_iter().collect()
            }
            Some(name) if local => self.anchors.get(name.as_str()).cloned().unwrap_or_default(),
            _ => Vec::new(),
        };
        if targets.is_empty() {
            let message = format!(
                "{reference:?} is not found in this schema; references lead to a place of the same \
                 schema, for example \"#/$defs/…\""
            );
            return Err(SchemaRefusal::new(at, message));
        }
        for target in targets {
            self.in_place(index, target, at.clone(), InPlace::Plain)?;
        }
        Ok(())
    }

    /// Patterns are compiled last: a schema with too many of them is refused before that.
    fn measure_patterns(&mut self) -> Result<(), SchemaRefusal> {
        for (text, uses) in &self.patterns {
            let user = uses.on_text.first().or(uses.on_names.first());
            let at = user.map_or("", |index| self.graph.parts[*index].at.as_str());
            let keyword = if uses.on_text.is_empty() {
                below(&below(at, "patternProperties"), text)
            } else {
                below(at, "pattern")
            };
            let cost = pattern::check(text, &keyword)?;
            self.budget.take_pattern_bytes(cost.bytes, &keyword)?;
            self.graph.pattern_bytes += cost.bytes;
            for index in &uses.on_text {
                let part = &mut self.graph.parts[*index];
                part.text_work = part.text_work.saturating_add(cost.work);
            }
            for index in &uses.on_names {
                let part = &mut self.graph.parts[*index];
                part.name_work = part.name_work.saturating_add(cost.work);
            }
        }
        Ok(())
    }
}

/// Work of comparing with a value that the schema contains.
fn size_work(value: &Value) -> u64 {
    let bytes = size(value, 0).unwrap_or(usize::MAX);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The fragment of a reference without its percent signs. `None` when it is not text.
fn decode(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
