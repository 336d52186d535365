//! A page directly into columns: visitors push each value into a column, without structs.
//! Members may come in any order; unknown ones are skipped.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::columns::Columns;

/// Reads one body with sonic-rs into the columns; returns the cursor of the next page.
pub(crate) fn read<'a>(body: &'a [u8], columns: &mut Columns) -> sonic_rs::Result<Option<&'a str>> {
    let mut reader = sonic_rs::Deserializer::from_slice(body);
    let cursor = Page(columns).deserialize(&mut reader)?;
    reader.end()?;
    Ok(cursor)
}

/// A seed that is its own visitor: it requests a kind of value, and names it in errors.
macro_rules! seed {
    ($name:ident, $asks:ident, $value:ty, $expects:literal, $($visit:item)*) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = $value;

            #[inline]
            fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<$value, D::Error> {
                reader.$asks(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_> {
            type Value = $value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expects)
            }

            $($visit)*
        }
    };
}

/// The name of a member, as its number; a `match` on known texts compiles to the fastest code.
macro_rules! names {
    ($name:ident, $($text:literal => $number:literal),*) => {
        struct $name<'n>(PhantomData<&'n str>);

        seed! { $name, deserialize_identifier, usize, "a member's name",
            #[inline]
            fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
                Ok(match text {
                    $($text => $number,)*
                    _ => usize::MAX,
                })
            }
        }
    };
}

names! { PageName, "series" => 0, "nextCursor" => 1 }
names! { EnvelopeName, "siteId" => 0, "lineId" => 1, "machineId" => 2, "deviceId" => 3, "tagGuid" => 4, "points" => 5 }
names! { PointName, "timestamp" => 0, "value" => 1, "minimum" => 2, "maximum" => 3, "sampleCount" => 4 }

/// A list of items that are read with their seed.
macro_rules! list {
    ($name:ident, $item:ident) => {
        seed! { $name, deserialize_seq, (), "a list",
            #[inline]
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
                while items.next_element_seed($item(self.0))?.is_some() {}
                Ok(())
            }
        }
    };
}

struct Page<'c>(&'c mut Columns);
struct Envelopes<'c>(&'c mut Columns);
struct Envelope<'c>(&'c mut Columns);
struct Points<'c>(&'c mut Columns);
struct Point<'c>(&'c mut Columns);

list! { Envelopes, Envelope }
list! { Points, Point }

seed! { Page, deserialize_map, Option<&'de str>, "a page",
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<&'de str>, A::Error> {
        let mut cursor = None;
        while let Some(member) = members.next_key_seed(PageName(PhantomData))? {
            match member {
                0 => members.next_value_seed(Envelopes(self.0))?,
                1 => cursor = members.next_value()?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(cursor)
    }
}

seed! { Envelope, deserialize_map, (), "an envelope",
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let from = self.0.timestamps.len();
        let mut identity = [""; 5];
        while let Some(member) = members.next_key_seed(EnvelopeName(PhantomData))? {
            match member {
                0..=4 => identity[member] = members.next_value()?,
                5 => members.next_value_seed(Points(self.0))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let rows = self.0.timestamps.len() - from;
        for (column, text) in self.0.identities.iter_mut().zip(identity) {
            column.fill(text, rows);
        }
        Ok(())
    }
}

seed! { Point, deserialize_map, (), "a point",
    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (mut timestamp, mut numbers, mut count) = (None, [f64::NAN; 3], None);
        while let Some(member) = members.next_key_seed(PointName(PhantomData))? {
            match member {
                0 => timestamp = self.0.clock.read(members.next_value()?),
                1..=3 => {
                    let number: Option<f64> = members.next_value()?;
                    numbers[member - 1] = number.unwrap_or(f64::NAN);
                }
                4 => count = members.next_value()?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let timestamp = timestamp.ok_or_else(|| A::Error::custom("a point without an instant"))?;
        self.0.timestamps.push(timestamp);
        for (column, number) in self.0.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        self.0.sample_counts.push(count.unwrap_or_default());
        self.0.counted.append(count.is_some());
        Ok(())
    }
}
