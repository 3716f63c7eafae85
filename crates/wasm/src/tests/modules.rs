//! The modules in the repository are what their texts say.

use std::path::Path;

/// Set `TANDEM_ASSEMBLE` to write the modules after changing a text.
#[test]
fn the_modules_are_assembled_from_the_texts_beside_them() {
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
