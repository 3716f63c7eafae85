//! `package.json` of an installed package: which file an import of it means. Only ES modules can be
//! imported; there is no `require` in the sandbox.

use serde_json::Value;
use std::path::Path;

/// Conditions of `exports`, best first.
const CONDITIONS: [&str; 3] = ["import", "module", "default"];

pub(crate) struct Package {
    manifest: Value,
}

impl Package {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let manifest =
            serde_json::from_str(&text).map_err(|error| format!("package.json: {error}"))?;
        Ok(Self { manifest })
    }

    /// The file for a path inside the package; the empty path is the package itself.
    pub(crate) fn entry(&self, path: &str) -> Result<String, String> {
        let exports = &self.manifest["exports"];
        if !exports.is_null() {
            let subpath = if path.is_empty() {
                ".".to_owned()
            } else {
                format!("./{path}")
            };
            return exported(exports, &subpath)
                .ok_or_else(|| "the package does not export it as an ES module".to_owned());
        }
        if !path.is_empty() {
            return Ok(path.to_owned());
        }
        let text = |field: &str| self.manifest[field].as_str().map(str::to_owned);
        if let Some(module) = text("module") {
            return Ok(module);
        }
        let main = text("main").unwrap_or_else(|| "index.js".to_owned());
        let is_module = self.manifest["type"] == "module" || main.ends_with(".mjs");
        if is_module {
            return Ok(main);
        }
        Err("the package has no ES module build (`exports`, `module`, or `main` with `type: module`)".to_owned())
    }
}

fn exported(exports: &Value, subpath: &str) -> Option<String> {
    let has_subpaths = exports
        .as_object()
        .is_some_and(|fields| fields.keys().any(|key| key.starts_with('.')));
    if !has_subpaths {
        return (subpath == ".").then(|| target(exports, None)).flatten();
    }
    if let Some(found) = exports.get(subpath) {
        return target(found, None);
    }
    let fields = exports.as_object()?;
    fields.iter().find_map(|(pattern, found)| {
        let (start, end) = pattern.split_once('*')?;
        let middle = subpath.strip_prefix(start)?.strip_suffix(end)?;
        target(found, Some(middle))
    })
}

fn target(value: &Value, star: Option<&str>) -> Option<String> {
    match value {
        Value::String(path) => Some(match star {
            Some(star) => path.replace('*', star),
            None => path.clone(),
        }),
        Value::Array(choices) => choices.iter().find_map(|choice| target(choice, star)),
        Value::Object(conditions) => CONDITIONS
            .iter()
            .find_map(|condition| target(conditions.get(*condition)?, star)),
        _ => None,
    }
}
