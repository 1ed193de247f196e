//! Messages to and from the JSON of Kafka's own converters.
//!
//! Names begin in lower case; a tagged field at its default is absent, every other field of the version is
//! present; bytes are base64, ids URL-safe base64; unknown tagged fields do not show.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use thiserror::Error;

use crate::codec::{Ctx, Message, Records, UnknownTags, Uuid};

pub use serde_json::{Map, Value};

/// JSON that is not the message it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{field}: {reason}", if field.is_empty() { "the message" } else { "" })]
pub struct JsonError {
    /// The way to the member.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl JsonError {
    fn new(reason: impl Into<String>) -> JsonError {
        JsonError { field: String::new(), reason: reason.into() }
    }

    fn expected(what: &str, found: &Value) -> JsonError {
        let found: String = found.to_string().chars().take(40).collect();
        JsonError::new(format!("expected {what}, found {found}"))
    }

    fn within(mut self, outer: &str) -> JsonError {
        if !self.field.is_empty() && !self.field.starts_with('[') {
            self.field.insert(0, '.');
        }
        self.field.insert_str(0, outer);
        self
    }
}

/// A value that has a JSON form. What depends on the version is decided by `ctx`.
pub trait Json: Sized {
    /// Shows the value.
    fn to_json(&self, ctx: Ctx) -> Value;

    /// Reads the value.
    ///
    /// # Errors
    /// If a member is missing, unknown, or of another type.
    fn from_json(ctx: Ctx, value: &Value) -> Result<Self, JsonError>;

    /// The unknown tagged fields of the struct at the end of `path`, such as `topics`, `0`.
    fn unknown_tags_at(&mut self, _path: &[&str]) -> Option<&mut UnknownTags> {
        None
    }
}

/// Shows a message at `version`.
pub fn to_json<M: Message + Json>(message: &M, version: i16) -> Value {
    message.to_json(M::ctx(version))
}

/// Reads a message at `version`.
///
/// # Errors
/// If a member is missing, unknown, or of another type.
pub fn from_json<M: Message + Json>(version: i16, value: &Value) -> Result<M, JsonError> {
    M::from_json(M::ctx(version), value)
}

/// The members of a JSON object, of which none may be left over.
#[doc(hidden)]
#[derive(Debug)]
pub struct Object<'a> {
    members: &'a Map<String, Value>,
    taken: usize,
    names: Vec<&'static str>,
}

impl<'a> Object<'a> {
    #[doc(hidden)]
    pub fn new(value: &'a Value) -> Result<Object<'a>, JsonError> {
        let members = value.as_object().ok_or_else(|| JsonError::expected("an object", value))?;
        Ok(Object { members, taken: 0, names: Vec::new() })
    }

    #[doc(hidden)]
    pub fn optional<T: Json>(
        &mut self,
        ctx: Ctx,
        name: &'static str,
    ) -> Result<Option<T>, JsonError> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        self.taken += 1;
        self.names.push(name);
        T::from_json(ctx, value).map(Some).map_err(|error| error.within(name))
    }

    #[doc(hidden)]
    pub fn required<T: Json>(&mut self, ctx: Ctx, name: &'static str) -> Result<T, JsonError> {
        self.optional(ctx, name)?.ok_or_else(|| JsonError::new("is missing").within(name))
    }

    #[doc(hidden)]
    pub fn finish(self) -> Result<(), JsonError> {
        if self.taken == self.members.len() {
            return Ok(());
        }
        let surplus = self.members.keys().find(|name| !self.names.contains(&name.as_str()));
        Err(JsonError::new("is not in this version").within(surplus.map_or("", String::as_str)))
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Json for $number {
            fn to_json(&self, _: Ctx) -> Value {
                Value::from(*self)
            }

            fn from_json(_: Ctx, value: &Value) -> Result<$number, JsonError> {
                let number = value.as_i64().and_then(|number| number.try_into().ok());
                number.ok_or_else(|| JsonError::expected(stringify!($number), value))
            }
        }
    )*};
}

numbers!(i8, i16, u16, i32, i64);

impl Json for f64 {
    fn to_json(&self, _: Ctx) -> Value {
        Value::from(*self)
    }

    fn from_json(_: Ctx, value: &Value) -> Result<f64, JsonError> {
        value.as_f64().ok_or_else(|| JsonError::expected("a number", value))
    }
}

impl Json for bool {
    fn to_json(&self, _: Ctx) -> Value {
        Value::from(*self)
    }

    fn from_json(_: Ctx, value: &Value) -> Result<bool, JsonError> {
        value.as_bool().ok_or_else(|| JsonError::expected("true or false", value))
    }
}

impl Json for String {
    fn to_json(&self, _: Ctx) -> Value {
        Value::from(self.as_str())
    }

    fn from_json(_: Ctx, value: &Value) -> Result<String, JsonError> {
        text(value).map(str::to_owned)
    }
}

impl Json for Uuid {
    fn to_json(&self, _: Ctx) -> Value {
        Value::from(self.to_string())
    }

    fn from_json(_: Ctx, value: &Value) -> Result<Uuid, JsonError> {
        text(value)?.parse().map_err(|error| JsonError::new(format!("{error}")))
    }
}

impl Json for Bytes {
    fn to_json(&self, _: Ctx) -> Value {
        Value::from(STANDARD.encode(self))
    }

    fn from_json(_: Ctx, value: &Value) -> Result<Bytes, JsonError> {
        let bytes = STANDARD.decode(text(value)?);
        bytes.map(Bytes::from).map_err(|error| JsonError::new(format!("{error}")))
    }
}

impl Json for Records {
    fn to_json(&self, ctx: Ctx) -> Value {
        self.clone().into_bytes().to_json(ctx)
    }

    fn from_json(ctx: Ctx, value: &Value) -> Result<Records, JsonError> {
        Bytes::from_json(ctx, value).map(Records::from)
    }
}

impl<T: Json> Json for Option<T> {
    fn to_json(&self, ctx: Ctx) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.to_json(ctx))
    }

    fn from_json(ctx: Ctx, value: &Value) -> Result<Option<T>, JsonError> {
        match value {
            Value::Null => Ok(None),
            value => T::from_json(ctx, value).map(Some),
        }
    }

    fn unknown_tags_at(&mut self, path: &[&str]) -> Option<&mut UnknownTags> {
        self.as_mut()?.unknown_tags_at(path)
    }
}

impl<T: Json> Json for Vec<T> {
    fn to_json(&self, ctx: Ctx) -> Value {
        self.iter().map(|element| element.to_json(ctx)).collect()
    }

    fn from_json(ctx: Ctx, value: &Value) -> Result<Vec<T>, JsonError> {
        let elements = value.as_array().ok_or_else(|| JsonError::expected("an array", value))?;
        let read = elements.iter().enumerate().map(|(index, element)| {
            T::from_json(ctx, element).map_err(|error| error.within(&format!("[{index}]")))
        });
        read.collect()
    }

    fn unknown_tags_at(&mut self, path: &[&str]) -> Option<&mut UnknownTags> {
        let (index, rest) = path.split_first()?;
        self.get_mut(index.parse::<usize>().ok()?)?.unknown_tags_at(rest)
    }
}

fn text(value: &Value) -> Result<&str, JsonError> {
    value.as_str().ok_or_else(|| JsonError::expected("a string", value))
}
