//! Node types of packs, as far as documents and decisions depend on them. The code of a pack is not
//! known here.

use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::is_reserved_type;
use tandem_schema::Schema;

/// The types of a host's packs.
#[derive(Clone, Debug, Default)]
pub struct PackTypes(BTreeMap<String, PackType>);

#[derive(Clone, Debug)]
pub struct PackType {
    /// The pack it comes from, as `name@version`.
    pub pack: String,
    /// The schema of its configuration, if its author gave one.
    pub config: Option<Arc<Schema>>,
}

impl PackTypes {
    pub fn get(&self, type_id: &str) -> Option<&PackType> {
        self.0.get(type_id)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl FromIterator<(String, PackType)> for PackTypes {
    fn from_iter<T: IntoIterator<Item = (String, PackType)>>(types: T) -> Self {
        let types = types.into_iter();
        Self(types.filter(|(id, _)| !is_reserved_type(id)).collect())
    }
}

/// Types whose configuration may be anything, each with its pack.
impl<'a> FromIterator<(&'a str, &'a str)> for PackTypes {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(types: T) -> Self {
        let known = types.into_iter().map(|(id, pack)| {
            let pack = pack.to_owned();
            (id.to_owned(), PackType { pack, config: None })
        });
        known.collect()
    }
}

/// Which types a document may use besides the host's own.
#[derive(Clone, Copy, Debug, Default)]
pub enum AllowedPackTypes<'a> {
    #[default]
    None,
    Listed(&'a PackTypes),
    /// The document was accepted earlier. Its packs may have been removed since, but its runs still
    /// exist.
    PreviouslyAccepted,
}

impl<'a> AllowedPackTypes<'a> {
    pub(crate) fn contains(self, type_id: &str) -> bool {
        match self {
            Self::None => false,
            Self::Listed(types) => types.get(type_id).is_some(),
            Self::PreviouslyAccepted => !is_reserved_type(type_id),
        }
    }

    /// Whether an installed pack has the type.
    pub(crate) fn is_listed(self, type_id: &str) -> bool {
        matches!(self, Self::Listed(types) if types.get(type_id).is_some())
    }

    /// The schema of a type's configuration.
    pub(crate) fn config(self, type_id: &str) -> Option<&'a Schema> {
        match self {
            Self::Listed(types) => types.get(type_id)?.config.as_deref(),
            Self::None | Self::PreviouslyAccepted => None,
        }
    }
}
