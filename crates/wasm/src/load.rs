//! Loads a pack: checks manifest and module, each against the other.

use crate::ABI_VERSIONS;
use crate::imports::{self, HostState};
use crate::limits::PackLimits;
use crate::load_error::PackLoadError;
use crate::manifest::Manifest;
use crate::memory_section::strip_memory_maximum;
use crate::sandbox::{CallError, Sandbox, Stop};
use crate::schemas::Schemas;
use tandem_record::Timestamp;
use wasmi::{Engine, ExternType, Linker, Module, Val};

/// Limit of bytes of a pack's or node's name.
const MAX_NAME: usize = 256;

/// Reads files of a pack, by the paths in its manifest.
pub(crate) type Files<'a> = &'a dyn Fn(&str, usize) -> Result<Vec<u8>, PackLoadError>;

pub struct Pack {
    pub(crate) name: String,
    pub(crate) version: String,
    /// In the module's own order.
    pub(crate) nodes: Vec<PackNode>,
    pub(crate) module: Module,
    pub(crate) linker: Linker<HostState>,
    /// Memory limit in pages that the module or its manifest declares.
    pub(crate) own_pages: Option<u64>,
}

pub(crate) struct PackNode {
    pub(crate) type_id: String,
    pub(crate) schemas: Schemas,
}

impl Pack {
    pub(crate) fn load(
        engine: &Engine,
        manifest: &str,
        files: Files<'_>,
        limits: &PackLimits,
    ) -> Result<Self, PackLoadError> {
        let manifest = Manifest::parse(manifest)?;
        let bytes = files(&manifest.runtime.entry, limits.module_bytes)?;
        let (bytes, own) = strip_memory_maximum(&bytes);
        let module =
            Module::new(engine, &bytes).map_err(|e| PackLoadError::Module(e.to_string()))?;
        imports::check(&module)?;
        check_exports(&module)?;
        let declared = manifest.runtime.wasm.as_ref();
        let declared = declared.and_then(|wasm| wasm.memory_pages_max);
        let mut pack = Self {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            nodes: Vec::new(),
            linker: imports::linker(engine),
            module,
            own_pages: own.into_iter().chain(declared).min(),
        };
        pack.read_node_types(&manifest, files, limits)?;
        Ok(pack)
    }

    /// `name@version`.
    pub fn title(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Reads the module's name and its node types.
    fn read_node_types(
        &mut self,
        manifest: &Manifest,
        files: Files<'_>,
        limits: &PackLimits,
    ) -> Result<(), PackLoadError> {
        let host_state =
            HostState::new(*limits, self.own_pages, Timestamp::default(), String::new());
        let stop = Stop::default();
        let mut sandbox = Sandbox::new(&self.module, &self.linker, host_state, *limits, stop)?;
        let version = number(&mut sandbox, "openwop_abi_version")?;
        if !ABI_VERSIONS.contains(&version) {
            return Err(PackLoadError::AbiVersion {
                found: u64::from(version),
            });
        }
        let disagree = |message: String| Err(PackLoadError::Disagree(message));
        let name = text(&mut sandbox, "openwop_pack_name", &[])?;
        if name != manifest.name {
            let expected = &manifest.name;
            return disagree(format!("the module is {name:?}, the manifest {expected:?}"));
        }
        let count = number(&mut sandbox, "openwop_node_count")? as usize;
        if count != manifest.nodes.len() {
            let listed = manifest.nodes.len();
            return disagree(format!(
                "the module has {count} nodes, the manifest {listed}"
            ));
        }
        for index in 0..count {
            let index = i32::try_from(index).expect("as many as the manifest may list");
            let id = text(&mut sandbox, "openwop_node_id_at", &[Val::I32(index)])?;
            let listed = manifest.nodes.iter().find(|node| node.type_id == id);
            let Some(listed) = listed.filter(|_| !self.has_node_type(&id)) else {
                return disagree(format!("the manifest does not list the node {id:?}"));
            };
            self.nodes.push(PackNode {
                type_id: id,
                schemas: Schemas::read(listed, files, limits)?,
            });
        }
        Ok(())
    }

    fn has_node_type(&self, type_id: &str) -> bool {
        self.nodes.iter().any(|node| node.type_id == type_id)
    }
}

/// What an export returns. A pair comes as two values, or packed into one.
#[derive(Clone, Copy)]
enum ExportResult {
    Nothing,
    Number,
    Pair,
}

/// The functions of the ABI, with their parameters.
const EXPORTS: [(&str, &str, ExportResult); 7] = [
    ("openwop_abi_version", "", ExportResult::Number),
    ("openwop_pack_name", "", ExportResult::Pair),
    ("openwop_node_count", "", ExportResult::Number),
    ("openwop_node_id_at", "i32", ExportResult::Pair),
    ("openwop_alloc", "i32", ExportResult::Number),
    ("openwop_free", "i32 i32", ExportResult::Nothing),
    ("openwop_node_invoke", "i32 i32 i32", ExportResult::Pair),
];

fn check_exports(module: &Module) -> Result<(), PackLoadError> {
    for (name, takes, gives) in EXPORTS {
        let fitting = match gives {
            ExportResult::Nothing => vec![format!("({takes})")],
            ExportResult::Number => vec![format!("({takes}) -> i32")],
            ExportResult::Pair => {
                vec![format!("({takes}) -> i32 i32"), format!("({takes}) -> i64")]
            }
        };
        let found = match module.get_export(name) {
            Some(ExternType::Func(ty)) => Some(imports::signature(&ty)),
            _ => None,
        };
        if !found.is_some_and(|found| fitting.contains(&found)) {
            return Err(PackLoadError::Export {
                what: format!("{name}: {}", fitting.join(" or ")),
            });
        }
    }
    Ok(())
}

fn number(sandbox: &mut Sandbox, export: &str) -> Result<u32, PackLoadError> {
    match sandbox.call(export, &[]).map_err(trapped)?[..] {
        [Val::I32(number)] => Ok(number.cast_unsigned()),
        _ => Err(PackLoadError::Trapped(format!("{export} gave no number"))),
    }
}

fn text(sandbox: &mut Sandbox, export: &str, given: &[Val]) -> Result<String, PackLoadError> {
    let results = sandbox.call(export, given).map_err(trapped)?;
    let place = Sandbox::pair(&results).unwrap_or_default();
    let bytes = sandbox.read(place, MAX_NAME);
    let bytes = bytes.map_err(|why| PackLoadError::Trapped(format!("{export} gave {why}")))?;
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| PackLoadError::Trapped(format!("{export} gave no UTF-8")))?;
    Ok(text.to_owned())
}

fn trapped(error: CallError) -> PackLoadError {
    PackLoadError::Trapped(match error {
        CallError::Trap(why) => why,
        other => format!("{other:?}"),
    })
}
