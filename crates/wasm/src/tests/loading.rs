//! Packs that are refused before anything runs, and why.

use super::fixtures::{Module, TYPE, load, manifest};
use crate::{PackLimits, Packs, conformance_packs};
use serde_json::{Value, json};

fn refused(manifest: &Value, module: &Module) -> String {
    match load(manifest, &module.text()) {
        Ok(_) => "loaded".to_owned(),
        Err(load_error) => load_error.to_string(),
    }
}

#[test]
fn valid_pack_loads() {
    let packs = load(&manifest(), &Module::responding_with("{}").text()).expect("loads");
    let types: Vec<_> = packs.types().map(|t| (t.type_id, t.pack)).collect();
    assert_eq!(
        types,
        [(TYPE.to_owned(), "vendor.acme.tools@1.2.0".to_owned())]
    );
    assert_eq!(packs.names(), ["vendor.acme.tools"]);
}

#[test]
fn invalid_modules_are_refused_with_the_reason() {
    let whole = || Module::responding_with("{}");
    let table: [(Module, &str); 9] = [
        (
            Module {
                version: r#"(func (export "openwop_abi_version") (result i32) (i32.const 999))"#,
                ..whole()
            },
            "unsupported_abi_version: it speaks version 999",
        ),
        (
            Module {
                version: "",
                ..whole()
            },
            "it does not export openwop_abi_version: () -> i32",
        ),
        (
            Module {
                alloc: r#"(func (export "openwop_alloc") (param i64) (result i32) (i32.const 0))"#,
                ..whole()
            },
            "it does not export openwop_alloc: (i32) -> i32",
        ),
        (
            Module {
                memory: "(memory 1)",
                ..whole()
            },
            "it does not export memory",
        ),
        (
            Module {
                imports: r#"(import "wasi_snapshot_preview1" "fd_write"
                            (func (param i32 i32 i32 i32) (result i32)))"#,
                ..whole()
            },
            "it imports wasi_snapshot_preview1.fd_write, which this host does not serve",
        ),
        (
            Module {
                imports: r#"(import "openwop" "openwop_log" (func (param i32)))"#,
                ..whole()
            },
            "as something else than a function (i32 i32 i32)",
        ),
        (
            Module {
                name: "vendor.acme.other",
                ..whole()
            },
            "the module is \"vendor.acme.other\", the manifest \"vendor.acme.tools\"",
        ),
        (
            Module {
                node: "vendor.acme.tools.other",
                ..whole()
            },
            "the manifest does not list the node \"vendor.acme.tools.other\"",
        ),
        (
            Module {
                memory: r#"(memory (export "memory") 17)"#,
                ..whole()
            },
            "not a usable WebAssembly module",
        ),
    ];
    for (module, reason) in table {
        let error = refused(&manifest(), &module);
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
}

#[test]
fn a_start_function_is_refused() {
    let text = Module::responding_with("{}").text();
    let text = text.replacen("(module", "(module (func $begin) (start $begin)", 1);
    assert!(load(&manifest(), &text).is_err());
}

#[test]
fn manifests_with_unsupported_needs_are_refused() {
    let with = |pointer: &str, value: Value| {
        let mut manifest = manifest();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        manifest.pointer_mut(parent).expect("is there")[key] = value;
        manifest
    };
    let table = [
        (with("/name", json!("Acme")), "is not a pack name"),
        (with("/version", json!("one")), "is not a version"),
        (with("/nodes", json!([])), "1 to 256 nodes"),
        (with("/kind", json!("workflow-chain")), "kind is"),
        (with("/engines", json!({})), "missing field `openwop`"),
        (
            with("/nodes/0/typeId", json!("core.noop")),
            "\"core.noop\" is reserved",
        ),
        (
            with("/nodes/0/typeId", json!("vendor.tandem.http")),
            "\"vendor.tandem.http\" is reserved",
        ),
        (
            with("/runtime/entry", json!("../pack.wasm")),
            "leads out of the pack",
        ),
        (with("/runtime/entry", json!("/etc/passwd")), "leads out"),
        (
            with("/runtime/language", json!("javascript")),
            "unsupported_pack_runtime",
        ),
        (
            with("/runtime/format", json!("wasm-component")),
            "unsupported_pack_runtime",
        ),
        (
            with("/runtime/wasm", json!({"abiVersion": 2})),
            "unsupported_abi_version",
        ),
        (with("/agents", json!([{}])), "agents of packs"),
        (
            with("/dependencies", json!({"vendor.acme.base": "1"})),
            "vendor.acme.base",
        ),
        (
            with("/peerDependencies", json!({"credentials": "supported"})),
            "pack_peer_dependency_missing",
        ),
        (with("/nodes/0/requires", json!(["host.fs"])), "host.fs"),
        (
            with(
                "/nodes/0/requiresSecrets",
                json!([{"id": "k", "kind": "api-key"}]),
            ),
            "secrets",
        ),
        (
            with("/nodes/0/outputs", json!({"text": {"sensitive": true}})),
            "sensitive outputs",
        ),
        (
            with("/nodes/0/inputSchemaRef", json!("../schema.json")),
            "leads out of the pack",
        ),
    ];
    for (manifest, reason) in table {
        let error = refused(&manifest, &Module::responding_with("{}"));
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
}

#[test]
fn optional_needs_do_not_stop_a_pack() {
    let mut manifest = manifest();
    manifest["peerDependencies"] = json!({"mcp": "supported"});
    manifest["peerDependenciesMeta"] = json!({"mcp": {"optional": true}});
    assert_eq!(refused(&manifest, &Module::responding_with("{}")), "loaded");
}

#[test]
fn module_that_never_returns_is_refused() {
    let endless = r#"(func (export "openwop_abi_version") (result i32)
                       (loop $on (br $on)) (unreachable))"#;
    let module = Module {
        version: endless,
        ..Module::responding_with("{}")
    };
    let error = refused(&manifest(), &module);
    assert!(error.contains("it broke down"), "{error}");
}

#[test]
fn node_type_belongs_to_the_first_pack_that_provides_it() {
    let mut packs = Packs::new(PackLimits::default());
    let module = wat::parse_str(Module::responding_with("{}").text()).expect("assembles");
    let text = manifest().to_string();
    packs.add(&text, &|_, _| Ok(module.clone())).expect("loads");
    let again = packs.add(&text, &|_, _| Ok(module.clone()));
    let error = again.err().expect("refused").to_string();
    assert!(
        error.contains("is brought by vendor.acme.tools@1.2.0"),
        "{error}"
    );
    assert_eq!(packs.types().count(), 1);
}

#[test]
fn the_conformance_packs_load() {
    let mut packs = Packs::new(PackLimits::default());
    conformance_packs(&mut packs);
    let types: Vec<_> = packs.types().map(|t| t.type_id).collect();
    assert_eq!(
        types,
        [
            "vendor.openwop.misbehaving.memory-bomb",
            "vendor.openwop.rust-hello.greet"
        ]
    );
}
