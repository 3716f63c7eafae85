//! The modules in the repository match their text sources.

use crate::memory_section::strip_memory_maximum;
use crate::{PackLimits, Packs};
use std::path::Path;

/// Set `TANDEM_ASSEMBLE` to write the modules after changing a text.
#[test]
fn wasm_modules_match_their_wat_sources() {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("packs");
    for pack in ["greet", "memory-bomb"] {
        let text = packs.join(pack).join("pack.wat");
        let assembled = wat::parse_file(&text).expect("assembles");
        let module = packs.join(pack).join("pack.wasm");
        if std::env::var_os("TANDEM_ASSEMBLE").is_some() {
            std::fs::write(&module, &assembled).expect("written");
        }
        let kept = std::fs::read(&module).expect("readable");
        assert!(
            kept == assembled,
            "{pack}: set TANDEM_ASSEMBLE=1 and run again"
        );
    }
}

/// Any damage of a module is either refused or harmless to the loader.
#[test]
fn a_damaged_module_is_refused_or_loads() {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("packs/greet");
    let manifest = std::fs::read_to_string(packs.join("pack.json")).expect("readable");
    let sound = std::fs::read(packs.join("pack.wasm")).expect("readable");
    let limits = PackLimits {
        fuel: 10_000,
        ..PackLimits::default()
    };
    let loads = |module: Vec<u8>| {
        let mut packs = Packs::new(limits);
        packs.add(&manifest, &|_, _| Ok(module.clone())).is_ok()
    };
    assert!(loads(sound.clone()));
    for at in (0..sound.len()).step_by(3) {
        assert!(
            !loads(sound[..at].to_vec()) || at > sound.len() / 2,
            "cut off after {at} bytes"
        );
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        loads(flipped);
    }
}

#[test]
fn only_the_memory_maximum_is_stripped() {
    let assembled = |memory: &str| {
        let text = format!(r#"(module (memory {memory}) (global i32 (i32.const 7)))"#);
        wat::parse_str(text).expect("assembles")
    };
    for (memory, without, bound) in [
        ("1 300", "1", Some(300)),
        ("200 65536", "200", Some(65536)),
        ("1", "1", None),
    ] {
        let (module, found) = strip_memory_maximum(&assembled(memory));
        assert_eq!((module, found), (assembled(without), bound), "{memory}");
    }
    let odd = b"\0asm\x01\0\0\0\x05\xff\xff\xff\xff\xff\xff".to_vec();
    assert_eq!(strip_memory_maximum(&odd), (odd.clone(), None));
}
