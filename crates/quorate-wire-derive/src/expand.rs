//! Writes the implementations that the derive stands for.

use proc_macro2::TokenStream;
use quote::quote;

use crate::attributes::{Field, Message, Struct};

/// All implementations for one struct.
pub(crate) fn expand(parsed: &Struct) -> TokenStream {
    let ident = &parsed.ident;
    let default = default(parsed);
    let wire_len = wire_len(parsed);
    let write = write(parsed);
    let read = read(parsed);
    let json = json(parsed);
    let message = parsed.message.as_ref().map(|message| implement_message(parsed, message));
    quote! {
        #default

        impl ::quorate_wire::codec::Wire for #ident {
            #wire_len
            #write
            #read
        }

        impl ::quorate_wire::codec::Nullable for #ident {}

        #json

        #message
    }
}

fn implement_message(parsed: &Struct, message: &Message) -> TokenStream {
    let ident = &parsed.ident;
    let name = ident.to_string();
    let Message { key, min_version, max_version, flexible_since } = message;
    let key = match key {
        Some(key) => quote!(::core::option::Option::Some(#key)),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        impl ::quorate_wire::codec::Message for #ident {
            const NAME: &'static str = #name;
            const KEY: ::core::option::Option<i16> = #key;
            const VERSIONS: ::core::ops::RangeInclusive<i16> = #min_version..=#max_version;
            const FLEXIBLE_SINCE: i16 = #flexible_since;
        }
    }
}

impl Struct {
    fn plain(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.tag.is_none())
    }

    /// Ascending, as they stand on the wire.
    fn tagged(&self) -> Vec<(u32, &Field)> {
        let mut tagged: Vec<_> =
            self.fields.iter().filter_map(|field| Some((field.tag?, field))).collect();
        tagged.sort_by_key(|(tag, _)| *tag);
        tagged
    }
}

impl Field {
    /// Whether the version at hand has the field.
    fn present(&self) -> TokenStream {
        let Field { since, until, .. } = self;
        let mut conditions = Vec::new();
        if self.tag.is_some() {
            conditions.push(quote!(ctx.flexible));
        }
        if *since > 0 {
            conditions.push(quote!(ctx.version >= #since));
        }
        if *until < i16::MAX {
            conditions.push(quote!(ctx.version <= #until));
        }
        match conditions.is_empty() {
            true => quote!(true),
            false => quote!(#(#conditions)&&*),
        }
    }

    fn default(&self) -> TokenStream {
        match &self.default {
            Some(expr) => quote!(#expr),
            None => quote!(::core::default::Default::default()),
        }
    }

    fn is_default(&self) -> TokenStream {
        let Field { ident, ty, .. } = self;
        let default = self.default();
        quote!({ let default: #ty = #default; self.#ident == default })
    }

    fn ctx(&self) -> TokenStream {
        match self.never_flexible {
            true => quote!(ctx.rigid()),
            false => quote!(ctx),
        }
    }

    fn type_error(&self, error: &TokenStream) -> TokenStream {
        let Field { name, .. } = self;
        quote!(.map_err(|error: #error| error.within(#name)))
    }
}

fn default(parsed: &Struct) -> TokenStream {
    let ident = &parsed.ident;
    let fields = parsed.fields.iter().map(|field| {
        let Field { ident, .. } = field;
        let default = field.default();
        quote!(#ident: #default)
    });
    let unknown = parsed.unknown.iter().map(|ident| quote!(#ident: Default::default()));
    let all = fields.chain(unknown);
    quote! {
        impl ::core::default::Default for #ident {
            /// The schema's defaults.
            fn default() -> Self {
                Self { #(#all,)* }
            }
        }
    }
}

fn wire_len(parsed: &Struct) -> TokenStream {
    let error = quote!(::quorate_wire::EncodeError);
    let refuse = |field: &Field| {
        let name = &field.name;
        let is_default = field.is_default();
        match field.ignorable {
            true => quote!(),
            false => quote! {
                else if !#is_default {
                    return Err(#error::unsupported(#name, ctx.version));
                }
            },
        }
    };
    let plain = parsed.plain().map(|field| {
        let Field { ident, name, .. } = field;
        let present = field.present();
        let ctx = field.ctx();
        let within = field.type_error(&error);
        let refuse = refuse(field);
        let null = field.nullable_since.map(|since| {
            quote! {
                if self.#ident.is_none() && ctx.version < #since {
                    return Err(#error::unsupported(#name, ctx.version));
                }
            }
        });
        quote! {
            if #present {
                #null
                len += ::quorate_wire::codec::Wire::wire_len(&self.#ident, #ctx)#within?;
            } #refuse
        }
    });
    let tagged = parsed.tagged().into_iter().map(|(tag, field)| {
        let Field { ident, .. } = field;
        let present = field.present();
        let is_default = field.is_default();
        let within = field.type_error(&error);
        let refuse = refuse(field);
        quote! {
            if #present {
                if !#is_default {
                    tags += 1;
                    let size =
                        ::quorate_wire::codec::Wire::wire_len(&self.#ident, ctx)#within?;
                    len += ::quorate_wire::codec::tag_len(#tag, size);
                }
            } #refuse
        }
    });
    let known: Vec<u32> = parsed.tagged().into_iter().map(|(tag, _)| tag).collect();
    let unknown = parsed.unknown.iter().map(|ident| {
        quote! {
            tags += self.#ident.count();
            len += self.#ident.wire_len(ctx, &[#(#known),*])?;
        }
    });
    quote! {
        #[allow(clippy::float_cmp)]
        fn wire_len(&self, ctx: ::quorate_wire::codec::Ctx) -> Result<usize, #error> {
            let mut len = 0usize;
            let mut tags = 0usize;
            #(#plain)*
            #(#tagged)*
            #(#unknown)*
            if ctx.flexible {
                len += ::quorate_wire::codec::tag_count_len(tags)?;
            }
            Ok(len)
        }
    }
}

fn write(parsed: &Struct) -> TokenStream {
    let plain = parsed.plain().map(|field| {
        let Field { ident, .. } = field;
        let present = field.present();
        let ctx = field.ctx();
        quote! {
            if #present {
                ::quorate_wire::codec::Wire::write(&self.#ident, #ctx, writer);
            }
        }
    });
    let counted = parsed.tagged().into_iter().map(|(_, field)| {
        let present = field.present();
        let is_default = field.is_default();
        quote! {
            if (#present) && !#is_default {
                tags += 1;
            }
        }
    });
    let unknown_count = parsed.unknown.iter().map(|ident| quote!(tags += self.#ident.count();));
    let unknown_iter =
        parsed.unknown.iter().map(|ident| quote!(let mut unknown = self.#ident.iter().peekable();));
    let unknown_rest = parsed.unknown.iter().map(|_| {
        quote! {
            for (tag, data) in unknown {
                writer.unknown_tag(tag, data);
            }
        }
    });
    let tagged = parsed.tagged().into_iter().map(|(tag, field)| {
        let Field { ident, .. } = field;
        let present = field.present();
        let is_default = field.is_default();
        let before = parsed.unknown.iter().map(|_| {
            quote! {
                while let Some((tag, data)) = unknown.next_if(|(tag, _)| *tag < #tag) {
                    writer.unknown_tag(tag, data);
                }
            }
        });
        quote! {
            #(#before)*
            if (#present) && !#is_default {
                writer.tag(#tag, ctx, &self.#ident);
            }
        }
    });
    quote! {
        fn write(
            &self,
            ctx: ::quorate_wire::codec::Ctx,
            writer: &mut ::quorate_wire::codec::Writer,
        ) {
            #(#plain)*
            if ctx.flexible {
                let mut tags = 0usize;
                #(#counted)*
                #(#unknown_count)*
                writer.tag_count(tags);
                #(#unknown_iter)*
                #(#tagged)*
                #(#unknown_rest)*
            }
        }
    }
}

fn read(parsed: &Struct) -> TokenStream {
    let error = quote!(::quorate_wire::DecodeError);
    let plain = parsed.plain().map(|field| {
        let Field { ident, ty, name, .. } = field;
        let present = field.present();
        let ctx = field.ctx();
        let default = field.default();
        let within = field.type_error(&error);
        let null = field.nullable_since.map(|since| {
            quote! {
                if #ident.is_none() && ctx.version < #since {
                    return Err(reader.null().within(#name));
                }
            }
        });
        quote! {
            let #ident: #ty = if #present {
                <#ty as ::quorate_wire::codec::Wire>::read(#ctx, reader)#within?
            } else {
                #default
            };
            #null
        }
    });
    let tagged_fields = parsed.tagged();
    let tagged_defaults = tagged_fields.iter().map(|(_, field)| {
        let Field { ident, ty, .. } = field;
        let default = field.default();
        quote!(let mut #ident: #ty = #default;)
    });
    let arms = tagged_fields.iter().map(|(tag, field)| {
        let Field { ident, ty, name, .. } = field;
        let present = field.present();
        let within = field.type_error(&error);
        quote! {
            #tag if #present => {
                #ident = reader.tagged::<#ty>(ctx, #tag, size)#within?;
            }
            #tag => return Err(reader.tag_not_in_version(#tag, ctx.version).within(#name)),
        }
    });
    let unknown_let = parsed
        .unknown
        .iter()
        .map(|ident| quote!(let mut #ident = ::quorate_wire::UnknownTags::default();));
    let other = match &parsed.unknown {
        Some(ident) => quote!(tag => #ident.read(tag, size, reader)?),
        None => quote!(_ => reader.skip(size)?),
    };
    let sort = parsed.unknown.iter().map(|ident| quote!(#ident.sort();));
    let all = parsed.fields.iter().map(|field| &field.ident).chain(&parsed.unknown);
    quote! {
        fn read(
            ctx: ::quorate_wire::codec::Ctx,
            reader: &mut ::quorate_wire::codec::Reader,
        ) -> Result<Self, #error> {
            #(#plain)*
            #(#tagged_defaults)*
            #(#unknown_let)*
            if ctx.flexible {
                for _ in 0..reader.tag_count()? {
                    let (tag, size) = reader.tag()?;
                    match tag {
                        #(#arms)*
                        #other,
                    }
                }
                #(#sort)*
            }
            Ok(Self { #(#all),* })
        }
    }
}

fn json(parsed: &Struct) -> TokenStream {
    let ident = &parsed.ident;
    let error = quote!(::quorate_wire::json::JsonError);
    let to = parsed.fields.iter().map(|field| {
        let Field { ident, name, .. } = field;
        let present = field.present();
        let shown = match field.tag {
            Some(_) => {
                let is_default = field.is_default();
                quote!((#present) && !#is_default)
            }
            None => present,
        };
        quote! {
            if #shown {
                object.insert(
                    ::std::string::String::from(#name),
                    ::quorate_wire::json::Json::to_json(&self.#ident, ctx),
                );
            }
        }
    });
    let from = parsed.fields.iter().map(|field| {
        let Field { ident, ty, name, .. } = field;
        let present = field.present();
        let default = field.default();
        let read = match field.tag {
            Some(_) => quote! {
                match object.optional::<#ty>(ctx, #name)? {
                    Some(value) => value,
                    None => #default,
                }
            },
            None => quote!(object.required::<#ty>(ctx, #name)?),
        };
        quote!(#ident: if #present { #read } else { #default })
    });
    let unknown_default = parsed.unknown.iter().map(|ident| quote!(#ident: Default::default()));
    let members = from.chain(unknown_default);
    let own = match &parsed.unknown {
        Some(ident) => quote!(Some(&mut self.#ident)),
        None => quote!(None),
    };
    let inner = parsed.fields.iter().map(|field| {
        let Field { ident, name, .. } = field;
        quote! {
            Some((&#name, rest)) => {
                ::quorate_wire::json::Json::unknown_tags_at(&mut self.#ident, rest)
            }
        }
    });
    quote! {
        #[cfg(feature = "json")]
        impl ::quorate_wire::json::Json for #ident {
            fn to_json(
                &self,
                ctx: ::quorate_wire::codec::Ctx,
            ) -> ::quorate_wire::json::Value {
                let mut object = ::quorate_wire::json::Map::new();
                #(#to)*
                ::quorate_wire::json::Value::Object(object)
            }

            fn from_json(
                ctx: ::quorate_wire::codec::Ctx,
                value: &::quorate_wire::json::Value,
            ) -> Result<Self, #error> {
                let mut object = ::quorate_wire::json::Object::new(value)?;
                let message = Self { #(#members,)* };
                object.finish()?;
                Ok(message)
            }

            fn unknown_tags_at(
                &mut self,
                path: &[&str],
            ) -> Option<&mut ::quorate_wire::UnknownTags> {
                match path.split_first() {
                    None => #own,
                    #(#inner)*
                    Some(_) => None,
                }
            }
        }
    }
}
