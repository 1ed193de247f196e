//! `#[derive(Wire)]`: a plain struct becomes a Kafka message.
//!
//! The struct is the schema: one field a line, in wire order, with the versions that have it. The
//! attributes are described where the derive is re-exported, at `quorate_wire::codec::Wire`.

use proc_macro::TokenStream;

mod attributes;
mod expand;

/// Implements `Wire`, `Nullable`, `Default` and, under the feature `json`, `Json` for a struct;
/// with `versions` also `Message`.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    attributes::Struct::parse(&input)
        .map(|parsed| expand::expand(&parsed))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
