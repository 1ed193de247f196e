//! SPDX licence expressions: `OR` gives a choice, `AND` binds tighter and asks for both.

use anyhow::{Result, bail};

/// What an Apache-2.0 project can ship.
const ALLOWED: [&str; 7] =
    ["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Whether an expression leaves a choice in which every licence is allowed. A licence `WITH` an exception is
/// a licence of its own, and none such is allowed.
///
/// # Errors
///
/// If the text is no SPDX expression.
pub(super) fn is_allowed(expression: &str) -> Result<bool> {
    // The older form `MIT/Apache-2.0` means OR.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { tokens: &tokens };
    let allowed = parser.any()?;
    if let Some(token) = parser.tokens.first() {
        bail!("{expression:?} is no licence expression: {token:?} has no place there");
    }
    Ok(allowed)
}

struct Parser<'a> {
    tokens: &'a [&'a str],
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<bool> {
        let mut allowed = self.all()?;
        while self.eat("OR") {
            allowed |= self.all()?;
        }
        Ok(allowed)
    }

    fn all(&mut self) -> Result<bool> {
        let mut allowed = self.one()?;
        while self.eat("AND") {
            allowed &= self.one()?;
        }
        Ok(allowed)
    }

    fn one(&mut self) -> Result<bool> {
        if self.eat("(") {
            let allowed = self.any()?;
            if !self.eat(")") {
                bail!("a bracket is not closed");
            }
            return Ok(allowed);
        }
        let licence = self.word()?;
        if self.eat("WITH") {
            self.word()?;
            return Ok(false);
        }
        Ok(ALLOWED.contains(&licence))
    }

    fn word(&mut self) -> Result<&'a str> {
        match self.tokens.split_first() {
            Some((word, rest)) if !["OR", "AND", "WITH", "(", ")"].contains(word) => {
                self.tokens = rest;
                Ok(word)
            }
            Some((word, _)) => bail!("{word:?} stands where a licence should"),
            None => bail!("the licence expression ends too early"),
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if *first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn or_is_a_choice_and_and_asks_for_both() {
        for (expression, allowed) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT OR Apache-2.0 AND GPL-3.0-only", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0-only", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("Unlicense/MIT", true),
            ("MPL-2.0/0BSD", false),
        ] {
            assert_eq!(is_allowed(expression).expect(expression), allowed, "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in
            ["", "MIT OR", "OR MIT", "MIT Apache-2.0", "(MIT", "MIT)", "MIT WITH", "MIT AND OR ISC"]
        {
            assert!(is_allowed(text).is_err(), "{text}");
        }
    }
}
