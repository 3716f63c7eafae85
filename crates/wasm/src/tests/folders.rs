//! Packs on a disk.

use super::fixtures::{Module, limits, manifest};
use crate::{Packs, load_directories};
use std::path::Path;

fn put(folder: &Path, manifest: &str, module: &[u8]) {
    std::fs::create_dir_all(folder).expect("created");
    std::fs::write(folder.join("pack.json"), manifest).expect("written");
    std::fs::write(folder.join("pack.wasm"), module).expect("written");
}

#[test]
fn every_folder_with_a_manifest_loads_and_invalid_ones_are_reported() {
    let home = tempfile::tempdir().expect("a directory");
    let module = wat::parse_str(Module::responding_with("{}").text()).expect("assembles");
    put(&home.path().join("good"), &manifest().to_string(), &module);
    put(&home.path().join("broken"), "{", &module);
    put(
        &home.path().join("large"),
        &manifest().to_string(),
        &vec![0; 9 << 20],
    );
    std::fs::create_dir(home.path().join("notes")).expect("created");

    let mut packs = Packs::new(limits());
    let refused = load_directories(&mut packs, &[home.path().to_owned()]).expect("readable");
    let reasons: Vec<String> = refused.iter().map(|r| r.why.to_string()).collect();
    assert_eq!(packs.names(), ["vendor.acme.tools"]);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].starts_with("pack.json: "), "{reasons:?}");
    assert_eq!(reasons[1], "pack.wasm has more than 8388608 bytes");

    // A directory may be a pack itself. A missing directory is an error.
    let mut packs = Packs::new(limits());
    load_directories(&mut packs, &[home.path().join("good")]).expect("readable");
    assert_eq!(packs.types().count(), 1);
    assert!(load_directories(&mut packs, &[home.path().join("nowhere")]).is_err());
}

#[cfg(unix)]
#[test]
fn symlink_out_of_a_pack_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let module = wat::parse_str(Module::responding_with("{}").text()).expect("assembles");
    let outside = home.path().join("outside.wasm");
    std::fs::write(&outside, &module).expect("written");
    let folder = home.path().join("packs").join("sly");
    put(&folder, &manifest().to_string(), &module);
    std::fs::remove_file(folder.join("pack.wasm")).expect("removed");
    std::os::unix::fs::symlink(&outside, folder.join("pack.wasm")).expect("linked");

    let mut packs = Packs::new(limits());
    let refused = load_directories(&mut packs, &[home.path().join("packs")]).expect("readable");
    assert_eq!(
        refused[0].why.to_string(),
        "pack.json: \"pack.wasm\" leads out of the pack"
    );
}
