//! The text of a script: blocks of commands, and below `----` what they should give.
//!
//! A block ends at an empty line. One without `----` is set-up: its output is not looked at. The words of a
//! command are flags or `key=value`; a word that nobody asked for is an error.

use std::str::FromStr;

/// A run of commands with what is expected of them.
pub(crate) struct Block {
    /// Comments and commands as written, each with its line number from 1.
    pub(crate) lines: Vec<(usize, String)>,
    /// The expected output, unless the block is set-up.
    pub(crate) expected: Option<String>,
}

/// Splits a script.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut block = Block { lines: Vec::new(), expected: None };
    for (at, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            if !block.lines.is_empty() {
                blocks.push(std::mem::replace(
                    &mut block,
                    Block { lines: Vec::new(), expected: None },
                ));
            }
        } else if line == "----" && block.expected.is_none() {
            block.expected = Some(String::new());
        } else if let Some(expected) = &mut block.expected {
            expected.push_str(line);
            expected.push('\n');
        } else {
            block.lines.push((at + 1, line.to_owned()));
        }
    }
    blocks
}

/// The script again, with these outputs for the blocks that have one.
pub(crate) fn text(blocks: &[Block], outputs: &[String]) -> String {
    let texts = blocks.iter().zip(outputs).map(|(block, output)| {
        let lines = block.lines.iter().map(|(_, line)| format!("{line}\n")).collect::<String>();
        match block.expected {
            Some(_) => format!("{lines}----\n{output}"),
            None => lines,
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The words of a command; each is taken once.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new(line: &str) -> Words {
        Words(line.split_whitespace().map(str::to_owned).collect())
    }

    /// The next word.
    pub(crate) fn next(&mut self) -> Result<String, String> {
        if self.0.is_empty() {
            return Err("a word is missing at the end".into());
        }
        Ok(self.0.remove(0))
    }

    /// The next word as a number or another value.
    pub(crate) fn parse<T: FromStr>(&mut self) -> Result<T, String> {
        let word = self.next()?;
        parse(&word)
    }

    /// All words that are left.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }

    /// Whether this word stands there.
    pub(crate) fn flag(&mut self, word: &str) -> bool {
        let place = self.0.iter().position(|other| other == word);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// The text after `key=`, if it stands there.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let value = |word: &String| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned());
        let place = self.0.iter().position(|word| value(word).is_some())?;
        value(&self.0.remove(place))
    }

    /// The value after `key=`.
    pub(crate) fn value<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        self.text(key).map(|text| parse(&text)).transpose()
    }

    /// All `key@place=value`.
    pub(crate) fn placed(&mut self, key: &str) -> Result<Vec<(i64, String)>, String> {
        let (mine, others): (Vec<String>, Vec<String>) =
            self.rest().into_iter().partition(|word| word.starts_with(&format!("{key}@")));
        self.0 = others;
        mine.iter()
            .map(|word| {
                let (place, value) = word[key.len() + 1..].split_once('=').ok_or("no = in it")?;
                Ok((parse(place)?, value.to_owned()))
            })
            .collect()
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.0.first() {
            Some(word) => Err(format!("`{word}` means nothing here")),
            None => Ok(()),
        }
    }
}

/// A number or another value.
pub(crate) fn parse<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a {}", std::any::type_name::<T>()))
}

/// `1500ms` as milliseconds, `20us` as microseconds.
pub(crate) fn time(text: &str) -> Result<std::time::Duration, String> {
    if let Some(number) = text.strip_suffix("us") {
        return Ok(std::time::Duration::from_micros(parse(number)?));
    }
    let number =
        text.strip_suffix("ms").ok_or_else(|| format!("`{text}`: times end in ms or us"))?;
    Ok(std::time::Duration::from_millis(parse(number)?))
}

/// `-` as none.
pub(crate) fn optional<T: FromStr>(text: &str) -> Result<Option<T>, String> {
    if text == "-" { Ok(None) } else { parse(text).map(Some) }
}

/// `12@3` as two numbers.
pub(crate) fn pair(text: &str) -> Result<(i64, i32), String> {
    let (offset, epoch) = text.split_once('@').ok_or_else(|| format!("`{text}` has no @"))?;
    Ok((parse(offset)?, parse(epoch)?))
}

/// `5..8` as two numbers.
pub(crate) fn range(text: &str) -> Result<(i64, i64), String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("`{text}` has no .."))?;
    Ok((parse(from)?, parse(to)?))
}
