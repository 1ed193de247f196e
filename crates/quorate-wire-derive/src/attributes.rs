//! Reads the `#[wire(...)]` attributes of a struct and checks that they make sense together.

use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Fields, Ident, Lit, LitInt, LitStr, Result, Type};

/// A struct and what its attributes say.
pub(crate) struct Struct {
    pub(crate) ident: Ident,
    /// Present for a message, absent for a struct inside one.
    pub(crate) message: Option<Message>,
    pub(crate) fields: Vec<Field>,
    /// The field that keeps unknown tags.
    pub(crate) unknown: Option<Ident>,
}

/// What only a whole message has.
pub(crate) struct Message {
    pub(crate) key: Option<i16>,
    pub(crate) min_version: i16,
    pub(crate) max_version: i16,
    pub(crate) flexible_since: i16,
}

/// A field and the versions that have it.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// Kafka's name with its first letter in lower case.
    pub(crate) name: String,
    pub(crate) since: i16,
    pub(crate) until: i16,
    pub(crate) tag: Option<u32>,
    pub(crate) default: Option<Expr>,
    pub(crate) nullable_since: Option<i16>,
    pub(crate) ignorable: bool,
    pub(crate) never_flexible: bool,
}

impl Struct {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Struct> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.span(), "only structs are messages"));
        };
        let Fields::Named(named) = &data.fields else {
            return Err(Error::new(input.span(), "a message has named fields"));
        };
        let mut fields = Vec::new();
        let mut unknown = None;
        for field in &named.named {
            match Field::parse(field)? {
                Some(field) => fields.push(field),
                None => unknown = field.ident.clone(),
            }
        }
        let mut tags: Vec<u32> = fields.iter().filter_map(|field| field.tag).collect();
        tags.sort_unstable();
        if tags.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::new(input.span(), "two fields have the same tag"));
        }
        Ok(Struct { ident: input.ident.clone(), message: Message::parse(input)?, fields, unknown })
    }
}

impl Message {
    fn parse(input: &DeriveInput) -> Result<Option<Message>> {
        let mut key = None;
        let mut versions = None;
        let mut flexible_since = i16::MAX;
        let mut any = false;
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            any = true;
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("key") {
                    key = Some(meta.value()?.parse::<LitInt>()?.base10_parse()?);
                } else if meta.path.is_ident("versions") {
                    versions = Some(range(&meta.value()?.parse()?)?);
                } else if meta.path.is_ident("flexible") {
                    flexible_since = range(&meta.value()?.parse()?)?.0;
                } else {
                    return Err(meta.error("expected key, versions or flexible"));
                }
                Ok(())
            })?;
        }
        match versions {
            Some((min_version, max_version)) => {
                Ok(Some(Message { key, min_version, max_version, flexible_since }))
            }
            None if any => Err(Error::new(input.span(), "a message needs `versions = A..=B`")),
            None => Ok(None),
        }
    }
}

impl Field {
    /// `None` for the field that keeps unknown tags.
    fn parse(field: &syn::Field) -> Result<Option<Field>> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new(field.span(), "a message has named fields"));
        };
        let mut parsed = Field {
            name: lower_camel(&ident.to_string()),
            ident,
            ty: field.ty.clone(),
            since: 0,
            until: i16::MAX,
            tag: None,
            default: None,
            nullable_since: None,
            ignorable: false,
            never_flexible: false,
        };
        let mut unknown = false;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("since") {
                    parsed.since = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                } else if meta.path.is_ident("until") {
                    parsed.until = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                } else if meta.path.is_ident("tag") {
                    parsed.tag = Some(meta.value()?.parse::<LitInt>()?.base10_parse()?);
                } else if meta.path.is_ident("nullable_since") {
                    parsed.nullable_since = Some(meta.value()?.parse::<LitInt>()?.base10_parse()?);
                } else if meta.path.is_ident("default") {
                    parsed.default = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("name") {
                    parsed.name = meta.value()?.parse::<LitStr>()?.value();
                } else if meta.path.is_ident("ignorable") {
                    parsed.ignorable = true;
                } else if meta.path.is_ident("never_flexible") {
                    parsed.never_flexible = true;
                } else if meta.path.is_ident("unknown") {
                    unknown = true;
                } else {
                    return Err(meta.error("no such attribute of a field"));
                }
                Ok(())
            })?;
        }
        if parsed.since > parsed.until {
            return Err(Error::new(field.span(), "the field ends before it begins"));
        }
        Ok((!unknown).then_some(parsed))
    }
}

/// Reads `A..=B` or `A..`.
fn range(expr: &Expr) -> Result<(i16, i16)> {
    let Expr::Range(range) = expr else {
        return Err(Error::new(expr.span(), "expected a range of versions"));
    };
    let bound = |bound: &Option<Box<Expr>>, open: i16| match bound.as_deref() {
        None => Ok(open),
        Some(Expr::Lit(literal)) => match &literal.lit {
            Lit::Int(int) => int.base10_parse(),
            other => Err(Error::new(other.span(), "expected a number")),
        },
        Some(other) => Err(Error::new(other.span(), "expected a number")),
    };
    Ok((bound(&range.start, 0)?, bound(&range.end, i16::MAX)?))
}

fn lower_camel(snake: &str) -> String {
    let mut name = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        if c == '_' {
            upper = true;
        } else if upper {
            name.extend(c.to_uppercase());
            upper = false;
        } else {
            name.push(c);
        }
    }
    name
}
