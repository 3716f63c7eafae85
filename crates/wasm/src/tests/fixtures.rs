//! A small module with replaceable parts, and its manifest.

use crate::{Caller, PackLimits, PackLoadError, Packs, Stop};
use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{
    EffectId, NodeId, Object, PackAnswer, PackCall, PackResult, RunId, TenantId, Timestamp,
};

pub(super) const TYPE: &str = "vendor.acme.tools.act";

/// Each part is WebAssembly text; the defaults are valid.
pub(super) struct Module {
    pub(super) imports: &'static str,
    pub(super) memory: &'static str,
    pub(super) version: &'static str,
    pub(super) name: &'static str,
    pub(super) node: &'static str,
    pub(super) alloc: &'static str,
    pub(super) invoke: String,
    pub(super) data: String,
}

impl Default for Module {
    fn default() -> Self {
        Self {
            imports: "",
            memory: r#"(memory (export "memory") 1)"#,
            version: r#"(func (export "openwop_abi_version") (result i32) (i32.const 1))"#,
            name: "vendor.acme.tools",
            node: TYPE,
            alloc: r#"(func (export "openwop_alloc") (param i32) (result i32) (i32.const 4096))"#,
            invoke: String::new(),
            data: String::new(),
        }
    }
}

impl Module {
    /// A node that always gives the same response.
    pub(super) fn responding_with(response: &str) -> Self {
        Self {
            invoke: format!("(i64.const {})", ((response.len() as u64) << 32) | 512),
            data: format!("(data (i32.const 512) {})", quoted(response)),
            ..Self::default()
        }
    }

    /// A node that does this instead of responding.
    pub(super) fn with_body(body: &str) -> Self {
        Self {
            invoke: format!("{body} (i64.const 0)"),
            ..Self::default()
        }
    }

    pub(super) fn text(&self) -> String {
        let Self {
            imports,
            memory,
            version,
            name,
            node,
            alloc,
            invoke,
            data,
        } = self;
        let pair = |at: u64, text: &str| ((text.len() as u64) << 32) | at;
        format!(
            r#"(module {imports} {memory} {data}
              (data (i32.const 0) {}) (data (i32.const 128) {})
              {version} {alloc}
              (func (export "openwop_pack_name") (result i64) (i64.const {}))
              (func (export "openwop_node_count") (result i32) (i32.const 1))
              (func (export "openwop_node_id_at") (param i32) (result i64) (i64.const {}))
              (func (export "openwop_free") (param i32 i32))
              (func (export "openwop_node_invoke")
                (param $node i32) (param $at i32) (param $len i32) (result i64) {invoke}))"#,
            quoted(name),
            quoted(node),
            pair(0, name),
            pair(128, node),
        )
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub(super) fn manifest() -> Value {
    json!({
        "name": "vendor.acme.tools", "version": "1.2.0", "engines": {"openwop": ">=1.0"},
        "nodes": [{"typeId": TYPE, "version": "1.0.0", "category": "data", "role": "pure"}],
        "runtime": {"language": "wasm", "entry": "pack.wasm"},
    })
}

/// Small enough to be reached quickly.
pub(super) fn limits() -> PackLimits {
    PackLimits {
        memory_bytes: 1 << 20,
        fuel: 5_000_000,
        time: Duration::from_secs(60),
        request_bytes: 2048,
        response_bytes: 1024,
        ..PackLimits::default()
    }
}

pub(super) fn load(manifest: &Value, module: &str) -> Result<Packs, PackLoadError> {
    let mut packs = Packs::new(limits());
    let module = wat::parse_str(module).expect("assembles");
    packs.add(&manifest.to_string(), &|path, _| match path {
        "pack.wasm" => Ok(module.clone()),
        "no-text.json" => Ok(br#"{"properties": {"text": false}}"#.to_vec()),
        other => panic!("no such file: {other}"),
    })?;
    Ok(packs)
}

pub(super) fn pack_call(type_id: &str, inputs: Value) -> PackCall {
    let Value::Object(inputs) = inputs else {
        panic!("inputs are an object");
    };
    PackCall {
        type_id: type_id.to_owned(),
        tenant: TenantId::new("acme"),
        inputs,
        config: Object::new(),
        configurable: Object::new(),
        agent: None,
        at: Timestamp(1_700_000_000_000),
    }
}

pub(super) fn call_with(packs: &Packs, call: &PackCall, attempt: u32) -> PackAnswer {
    let who = Caller {
        effect: &EffectId::new("effect-1"),
        run: &RunId::new("run-1"),
        node: &NodeId::new("act"),
        attempt,
    };
    packs.call(who, call, Stop::default())
}

/// Loads the module and calls its node once.
pub(super) fn answer_of(module: &Module, inputs: Value) -> PackAnswer {
    let packs = load(&manifest(), &module.text()).expect("loads");
    call_with(&packs, &pack_call(TYPE, inputs), 0)
}

/// The answer as one line.
pub(super) fn describe(answer: &PackAnswer) -> String {
    match &answer.result {
        PackResult::Completed { outputs } => Value::Object(outputs.clone()).to_string(),
        PackResult::Failed { error } if error.retryable => format!("{} (again)", error.code),
        PackResult::Failed { error } => error.code.clone(),
        PackResult::Breached {
            kind,
            limit,
            observed,
            error,
        } => {
            assert!(observed > limit, "{observed} is within {limit}");
            format!("{} {limit} {}", kind.as_str(), error.code)
        }
    }
}
