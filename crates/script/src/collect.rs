//! Follows the imports of a file and puts everything it needs into one source set.

use crate::load_error::LoadError;
use crate::positions::Positions;
use crate::resolve::{Resolved, Resolver};
use crate::source_set::{BUILT_IN, DETERMINISM_VERSION, ModuleSource, SourceSet};
use crate::strip::{Binding, Complaint, strip};
use std::collections::BTreeMap;

const MAX_FILE_BYTES: u64 = 2 << 20;
const MAX_TOTAL_BYTES: usize = 16 << 20;
const MAX_MODULES: usize = 2_000;

#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) set: SourceSet,
    /// The bindings of the entry that may be flows.
    pub(crate) bindings: Vec<Binding>,
}

/// Collects from several entries into one set; the first is the set's entry.
pub(crate) fn collect(resolver: &Resolver, entries: &[&str]) -> Result<Collected, Vec<LoadError>> {
    let mut modules = BTreeMap::new();
    let mut waiting: Vec<String> = entries
        .iter()
        .rev()
        .map(|path| (*path).to_owned())
        .collect();
    let mut entry_bindings = Vec::new();
    let mut errors = Vec::new();
    let mut bytes = 0;
    while let Some(path) = waiting.pop() {
        if modules.contains_key(&path) {
            continue;
        }
        let (module, bindings) = match read(resolver, &path) {
            Ok(read) => read,
            Err(found) => {
                errors.extend(found);
                // Its importers are sound; there is no point in following other imports.
                continue;
            }
        };
        bytes += module.source.len();
        if modules.len() == MAX_MODULES || bytes > MAX_TOTAL_BYTES {
            let message = format!(
                "it imports more than {MAX_MODULES} modules or {MAX_TOTAL_BYTES} bytes in all"
            );
            return Err(vec![LoadError::of_file(entries[0], message)]);
        }
        if path == entries[0] {
            entry_bindings = bindings;
        }
        let files = module.imports.values();
        waiting.extend(
            files
                .filter(|path| !BUILT_IN.contains(&path.as_str()))
                .cloned(),
        );
        modules.insert(path, module);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Collected {
        set: SourceSet {
            determinism: DETERMINISM_VERSION.to_owned(),
            entry: entries[0].to_owned(),
            modules,
            flows: BTreeMap::new(),
        },
        bindings: entry_bindings,
    })
}

fn read(resolver: &Resolver, path: &str) -> Result<(ModuleSource, Vec<Binding>), Vec<LoadError>> {
    let text =
        read_text(resolver, path).map_err(|message| vec![LoadError::of_file(path, message)])?;
    if path.ends_with(".json") {
        return json_module(path, &text).map(|module| (module, Vec::new()));
    }
    if path.ends_with(".toml") {
        return toml_module(path, &text).map(|module| (module, Vec::new()));
    }
    let at = |complaint: Complaint| LoadError::at(path, complaint.position, complaint.message);
    let stripped =
        strip(path, &text).map_err(|found| found.into_iter().map(at).collect::<Vec<_>>())?;
    let is_package = path.contains("node_modules/");
    if is_package && !stripped.has_module_syntax && !path.ends_with(".mjs") {
        let message = "it is not an ES module; there is no `require` in the sandbox";
        return Err(vec![LoadError::of_file(path, message)]);
    }
    let mut imports = BTreeMap::new();
    let mut errors = Vec::new();
    for import in stripped.imports {
        match resolver.resolve(path, &import.specifier) {
            Ok(Resolved::BuiltIn) => {
                imports.insert(import.specifier, BUILT_IN[0].to_owned());
            }
            Ok(Resolved::File(target)) => {
                imports.insert(import.specifier, target);
            }
            Err(message) => errors.push(LoadError::at(path, Some(import.position), message)),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let module = ModuleSource {
        source: stripped.source,
        map: stripped.map,
        imports,
    };
    Ok((module, stripped.bindings))
}

pub(crate) fn read_text(resolver: &Resolver, path: &str) -> Result<String, String> {
    let on_disk = resolver.on_disk(path);
    let size = std::fs::metadata(&on_disk)
        .map_err(|error| error.to_string())?
        .len();
    if size > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    std::fs::read_to_string(&on_disk).map_err(|error| error.to_string())
}

/// A module whose default export is the parsed file.
fn json_module(path: &str, text: &str) -> Result<ModuleSource, Vec<LoadError>> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let position = Some((error.line() as u32, error.column() as u32));
        return Err(vec![LoadError::at(path, position, error.to_string())]);
    }
    Ok(data_module(text))
}

/// As [`json_module`], for the agent's file only: TOML cannot be imported.
fn toml_module(path: &str, text: &str) -> Result<ModuleSource, Vec<LoadError>> {
    let read = toml::from_str::<serde_json::Value>(text);
    match read {
        Ok(value) => Ok(data_module(&value.to_string())),
        Err(error) => {
            let position = error.span().map(|span| Positions::of(text).at(span.start));
            Err(vec![LoadError::at(path, position, error.message())])
        }
    }
}

fn data_module(json: &str) -> ModuleSource {
    ModuleSource {
        source: format!("export default JSON.parse({});", serde_json::json!(json)),
        map: None,
        imports: BTreeMap::new(),
    }
}
