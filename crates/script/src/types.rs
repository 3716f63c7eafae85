//! Type declarations of the built-in module, for editors.

/// The text of `tandem.d.ts`, as it is printed: both parts of the declarations.
pub const TYPE_DECLARATIONS: &str = concat!(
    include_str!("js/tandem.d.ts"),
    "\n",
    include_str!("js/definitions.d.ts")
);
