//! The code of a flow or an agent, complete: the stripped source of an entry file and of every module it
//! imports. It is stored by hash when a run starts and runs later without the folder (Z-214).

use crate::failure::SourcePosition;
use oxc_sourcemap::SourceMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Raised when the same source may behave differently: another interpreter, environment or random
/// generator. It is part of every code hash.
pub const DETERMINISM_VERSION: &str = "quickjs-ng/rquickjs-0.14/1";

/// Beginning of the export names that the loader adds for bindings that their author did not export.
pub(crate) const ADDED_EXPORT: &str = "$flow_";

/// The built-in module and its alias.
pub(crate) const BUILT_IN: [&str; 2] = ["tandem", "zupa"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSource {
    /// JavaScript without types.
    pub source: String,
    /// Source map from `source` to the file. Absent when both have the same positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Import specifiers and the paths they stand for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, String>,
}

/// Where a module holds a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlowLocation {
    /// The export of this name.
    Export(String),
    /// `flows` of the configuration that the entry exports as default, under the flow's id.
    Config,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSet {
    pub determinism: String,
    /// Path of the module to evaluate. Paths are relative to the agent's folder.
    pub entry: String,
    pub modules: BTreeMap<String, ModuleSource>,
    /// The flows of the entry, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, FlowLocation>,
}

impl SourceSet {
    /// SHA-256 over the determinism version and the stripped sources, in hexadecimal.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(&self.determinism);
        add(&self.entry);
        for (path, module) in &self.modules {
            add(path);
            add(&module.source);
            for (specifier, target) in &module.imports {
                add(specifier);
                add(target);
            }
        }
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The place in the author's file that a place in the stripped source came from.
    pub(crate) fn original_position(
        &self,
        path: &str,
        line: u32,
        column: u32,
    ) -> Option<SourcePosition> {
        let module = self.modules.get(path)?;
        let (line, column) = module
            .map
            .as_deref()
            .and_then(|map| mapped(map, line, column))
            .unwrap_or((line, column));
        Some(SourcePosition {
            file: path.to_owned(),
            line,
            column,
        })
    }
}

/// Positions count from 1, source maps from 0.
fn mapped(map: &str, line: u32, column: u32) -> Option<(u32, u32)> {
    let map = SourceMap::from_json_string(map).ok()?;
    let table = map.generate_lookup_table();
    let token = map.lookup_token(&table, line.checked_sub(1)?, column.saturating_sub(1))?;
    Some((token.get_src_line() + 1, token.get_src_col() + 1))
}
