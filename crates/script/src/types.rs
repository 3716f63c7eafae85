//! Type declarations of the built-in module, for editors.

/// The text of `tandem.d.ts`.
pub const TYPE_DECLARATIONS: &str = include_str!("js/tandem.d.ts");
