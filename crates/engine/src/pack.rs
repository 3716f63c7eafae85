//! Node types that packs bring, as far as documents and decisions depend on them. What a pack's code
//! does is nobody's business here.

use std::collections::BTreeMap;
use tandem_record::is_reserved_type;

/// The types of a host's packs, each with the pack it comes from (`name@version`).
#[derive(Clone, Debug, Default)]
pub struct PackTypes(BTreeMap<String, String>);

impl PackTypes {
    /// The pack that brings a type.
    pub fn pack_of(&self, type_id: &str) -> Option<&str> {
        self.0.get(type_id).map(String::as_str)
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl FromIterator<(String, String)> for PackTypes {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(types: T) -> Self {
        let types = types.into_iter();
        Self(types.filter(|(id, _)| !is_reserved_type(id)).collect())
    }
}

/// Which types a document may use besides the host's own.
#[derive(Clone, Copy, Debug, Default)]
pub enum Brought<'a> {
    #[default]
    Nothing,
    By(&'a PackTypes),
    /// The document was accepted once; its packs may have gone since, and its runs have not.
    Once,
}

impl Brought<'_> {
    pub(crate) fn has(self, type_id: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::By(types) => types.pack_of(type_id).is_some(),
            Self::Once => !is_reserved_type(type_id),
        }
    }
}
