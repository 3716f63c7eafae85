//! The size of a value, computed without serializing it: the structure is visited, the bytes of
//! strings are not. The cost depends on the number of values, not on their length.
//!
//! Both numbers are estimates that err by a small factor: characters JSON escapes are counted once.

use serde::ser::{self, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

/// Memory of a `serde_json::Value` itself.
const VALUE: usize = 32;
/// What an object with members takes beside them: a node of the tree, which has room for eleven.
const OBJECT: usize = 560;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its JSON text.
    pub text: usize,
    /// Bytes it takes in memory as parsed JSON.
    pub memory: usize,
}

impl Size {
    /// The size of anything that is stored as JSON.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        let mut counter = Counter(Self::default());
        // Counting fails only where serializing would: on data that is not plain.
        let _ = value.serialize(&mut counter);
        counter.0
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            text: self.text.saturating_add(other.text),
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

struct Counter(Size);

impl Counter {
    fn scalar(&mut self, text: usize) -> Result<(), fmt::Error> {
        self.0 += Size {
            text,
            memory: VALUE,
        };
        Ok(())
    }

    fn integer(&mut self, value: u64) -> Result<(), fmt::Error> {
        self.scalar(value.checked_ilog10().unwrap_or(0) as usize + 1)
    }

    fn string(&mut self, bytes: usize) -> Result<(), fmt::Error> {
        self.0 += Size {
            text: bytes + 2,
            memory: VALUE + bytes,
        };
        Ok(())
    }

    fn key(&mut self, key: &str) {
        // Quotes, a colon, a comma.
        self.0.text += key.len() + 4;
    }

    /// Brackets.
    fn open(&mut self) {
        self.0 += Size {
            text: 2,
            memory: VALUE,
        };
    }

    fn open_named(&mut self, variant: &str) {
        self.open();
        self.key(variant);
        self.open();
    }
}

impl ser::Serializer for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, _: bool) -> Result<(), fmt::Error> {
        self.scalar(5)
    }

    fn serialize_i8(self, v: i8) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<(), fmt::Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<(), fmt::Error> {
        self.0.text += usize::from(v < 0);
        self.integer(v.unsigned_abs())
    }

    fn serialize_u8(self, v: u8) -> Result<(), fmt::Error> {
        self.integer(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), fmt::Error> {
        self.integer(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), fmt::Error> {
        self.integer(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<(), fmt::Error> {
        self.integer(v)
    }

    fn serialize_f32(self, v: f32) -> Result<(), fmt::Error> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, _: f64) -> Result<(), fmt::Error> {
        self.scalar(24)
    }

    fn serialize_char(self, v: char) -> Result<(), fmt::Error> {
        self.string(v.len_utf8())
    }

    fn serialize_str(self, v: &str) -> Result<(), fmt::Error> {
        self.string(v.len())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), fmt::Error> {
        self.string(v.len())
    }

    fn serialize_none(self) -> Result<(), fmt::Error> {
        self.scalar(4)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), fmt::Error> {
        self.scalar(4)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), fmt::Error> {
        self.scalar(4)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), fmt::Error> {
        self.string(variant.len())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        self.open();
        self.key(variant);
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, fmt::Error> {
        self.open();
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, fmt::Error> {
        self.open();
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        self.open();
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, fmt::Error> {
        self.open_named(variant);
        Ok(self)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self, fmt::Error> {
        self.open();
        if len != Some(0) {
            self.0.memory += OBJECT;
        }
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        self.open();
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, fmt::Error> {
        self.open_named(variant);
        Ok(self)
    }
}

impl ser::SerializeSeq for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        self.0.text += 1;
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeTuple for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeTupleStruct for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeTupleVariant for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeMap for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), fmt::Error> {
        self.0.text += 2;
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeStruct for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        self.key(key);
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl ser::SerializeStructVariant for &mut Counter {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        ser::SerializeStruct::serialize_field(self, key, value)
    }

    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn counted_text_size_is_close_to_serialized_length() {
        let values = [
            json!(null),
            json!({}),
            json!([]),
            json!("plain text"),
            json!(-12345),
            json!({"a": 1, "b": [true, "x", {"c": null}], "long": "y".repeat(10_000)}),
            json!((0..1000).collect::<Vec<u32>>()),
        ];
        for value in values {
            let (counted, written) = (Size::of(&value).text, value.to_string().len());
            let slack = written / 10 + 8;
            assert!(
                counted.abs_diff(written) <= slack,
                "{counted} for {written} bytes: {value:.60}"
            );
        }
    }

    #[test]
    fn structure_overhead_is_counted_as_memory() {
        let dense: Value = json!(vec![json!({"a": 0}); 1000]);
        let size = Size::of(&dense);
        assert!(size.memory > 10 * size.text, "{size:?}");
        let flat = Size::of(&json!("x".repeat(8_000)));
        assert!(flat.memory < flat.text + 64, "{flat:?}");
    }
}
