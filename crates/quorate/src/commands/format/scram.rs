//! `--add-scram`: users that exist from the first start on, with their SCRAM credentials (RFC 5802, RFC 7677,
//! KIP-900).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use pbkdf2::pbkdf2_hmac;
use quorate_wire::metadata::UserScramCredentialRecord;
use sha2::{Digest as _, Sha256, Sha512};

use crate::failure::Failure;
use crate::uuid;

/// How many iterations Kafka allows, and how many it takes if none are given.
const ITERATIONS: std::ops::RangeInclusive<i32> = 4096..=16384;

/// The hash behind a mechanism.
#[derive(Clone, Copy)]
enum Mechanism {
    Sha256,
    Sha512,
}

/// Reads `MECHANISM=[name=..,password=..]`, or with `salt` and `saltedpassword`, and makes the record.
pub(super) fn credential(argument: &str) -> Result<UserScramCredentialRecord, Failure> {
    make(argument).map_err(|what| {
        Failure::new(format!("--add-scram: {what}")).next(
            "for example --add-scram 'SCRAM-SHA-256=[name=alice,password=secret]', or with \
             salt=\"BASE64\",saltedpassword=\"BASE64\" in place of the password, and iterations=N",
        )
    })
}

fn make(argument: &str) -> Result<UserScramCredentialRecord, String> {
    let (mechanism, config) = argument.trim().split_once('=').ok_or("there is no mechanism")?;
    let mechanism = match mechanism {
        "SCRAM-SHA-256" => Mechanism::Sha256,
        "SCRAM-SHA-512" => Mechanism::Sha512,
        other => return Err(format!("{other} is neither SCRAM-SHA-256 nor SCRAM-SHA-512")),
    };
    let config = config.strip_prefix('[').and_then(|config| config.strip_suffix(']'));
    let mut given = Given::default();
    for part in split(config.ok_or("what belongs to the user is not in [ ]")?)? {
        given.take(&part)?;
    }
    let iterations = given.iterations.unwrap_or(*ITERATIONS.start());
    if !ITERATIONS.contains(&iterations) {
        let (low, high) = (ITERATIONS.start(), ITERATIONS.end());
        return Err(format!("iterations={iterations} is not from {low} to {high}"));
    }
    let name = given.name.ok_or("there is no name")?;
    let rounds = iterations.unsigned_abs();
    let (salt, salted) = match (given.password, given.salted_password, given.salt) {
        (None, None, _) => return Err("there is neither password nor saltedpassword".to_owned()),
        (Some(_), Some(_), _) => {
            return Err("password and saltedpassword exclude each other".to_owned());
        }
        (None, Some(_), None) => return Err("saltedpassword needs its salt".to_owned()),
        (None, Some(salted), Some(salt)) => (salt, salted),
        (Some(password), None, salt) => {
            let salt = salt.map_or_else(random_salt, Ok)?;
            let salted = mechanism.salted(password.as_bytes(), &salt, rounds);
            (salt, salted)
        }
    };
    Ok(UserScramCredentialRecord {
        name,
        mechanism: mechanism.code(),
        stored_key: mechanism.hash(&mechanism.mac(&salted, b"Client Key")).into(),
        server_key: mechanism.mac(&salted, b"Server Key").into(),
        salt: salt.into(),
        iterations,
        ..Default::default()
    })
}

#[derive(Default)]
struct Given {
    name: Option<String>,
    password: Option<String>,
    salt: Option<Vec<u8>>,
    salted_password: Option<Vec<u8>>,
    iterations: Option<i32>,
}

impl Given {
    fn take(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("{part} has no value"))?;
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
        let base64 = || STANDARD.decode(value).map_err(|_| format!("{key} is not base64"));
        let is_new = match key {
            "name" => self.name.replace(value.to_owned()).is_none(),
            "password" => self.password.replace(value.to_owned()).is_none(),
            "salt" => self.salt.replace(base64()?).is_none(),
            "saltedpassword" => self.salted_password.replace(base64()?).is_none(),
            "iterations" => {
                let iterations =
                    value.parse().map_err(|_| format!("iterations={value} is no number"))?;
                self.iterations.replace(iterations).is_none()
            }
            other => return Err(format!("{other} is not known")),
        };
        match is_new {
            true if !value.is_empty() => Ok(()),
            true => Err(format!("{key} is empty")),
            false => Err(format!("{key} is given twice")),
        }
    }
}

/// Splits at the commas outside double quotes.
fn split(config: &str) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in config.chars() {
        quoted ^= c == '"';
        match parts.last_mut() {
            Some(_) if c == ',' && !quoted => parts.push(String::new()),
            Some(part) => part.push(c),
            None => {}
        }
    }
    match quoted {
        true => Err("a quote is not closed".to_owned()),
        false => Ok(parts.into_iter().map(|part| part.trim().to_owned()).collect()),
    }
}

impl Mechanism {
    /// Its number in records.
    fn code(self) -> i8 {
        match self {
            Mechanism::Sha256 => 1,
            Mechanism::Sha512 => 2,
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha256 => {
                let mut key = vec![0; 32];
                pbkdf2_hmac::<Sha256>(password, salt, rounds, &mut key);
                key
            }
            Mechanism::Sha512 => {
                let mut key = vec![0; 64];
                pbkdf2_hmac::<Sha512>(password, salt, rounds, &mut key);
                key
            }
        }
    }

    fn mac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
                mac.update(text);
                mac.finalize().into_bytes().to_vec()
            }
            Mechanism::Sha512 => {
                let mut mac = Hmac::<Sha512>::new_from_slice(key).expect("any length is a key");
                mac.update(text);
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha256 => Sha256::digest(bytes).to_vec(),
            Mechanism::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

/// As Kafka makes it: a random number of 130 bits in base 36, as text.
fn random_salt() -> Result<Vec<u8>, String> {
    let mut number: [u8; 17] = uuid::random_bytes().map_err(|failure| failure.message)?;
    number[0] &= 0b11;
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte > 0) {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 36).expect("the rest is below 36");
            rest = value % 36;
        }
        digits.extend(char::from_digit(rest, 36).map(|digit| digit.to_string()));
    }
    digits.reverse();
    Ok(digits.concat().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kafka 4.4.0 wrote for these arguments, but for the salt of alice, which it had drawn.
    #[test]
    fn credentials_are_kafkas() {
        let salt = STANDARD.encode("6q5ltxk4kkr28gwjjjo320uwp");
        let alice = credential(&format!(
            "SCRAM-SHA-256=[name=alice,password=alice-secret,salt=\"{salt}\",iterations=8192]"
        ));
        let alice = alice.expect("good");
        assert_eq!((alice.name.as_str(), alice.mechanism, alice.iterations), ("alice", 1, 8192));
        assert_eq!(
            STANDARD.encode(&alice.stored_key),
            "bNS535DnVknag2/3lBdJwE42vQShJyAVuQWfM+AG3s0="
        );
        assert_eq!(
            STANDARD.encode(&alice.server_key),
            "WTrs+sza0f06IlkMKA+mQKWndVfWx+auefB9FwOUS8I="
        );

        let bob = credential(
            "SCRAM-SHA-512=[name=bob,salt=\"Z29sZGVuLXNhbHQ=\",saltedpassword=\"cXVvcmF0ZS1nb2xkZW4tc2FsdGVkLXBh\
             c3N3b3JkLW9mLWJvYi02NC1ieXRlcy1sb25nLTAxMjM0NTY3ODkwMQ==\",iterations=4096]",
        );
        let bob = bob.expect("good");
        assert_eq!((bob.mechanism, bob.salt.as_ref()), (2, &b"golden-salt"[..]));
        assert_eq!(
            STANDARD.encode(&bob.stored_key),
            "CnomDVrGA2hhONSw5JV7ZmDersYLr9Xw2vAu+YzT+mqCRyprrd3ftj8MVgEVygt1cQhUDkLmmIpDKPX1fjeWYw=="
        );
        assert_eq!(
            STANDARD.encode(&bob.server_key),
            "WU1v1Vrp//YFQWSi6iELecasjtus/B2O82JkcosjAFKmBllLiZjiTfOU1AWZHCVcsge0+LaUBMZGKpBD5fQnFA=="
        );
    }

    #[test]
    fn a_salt_is_drawn_anew_each_time() {
        let draw = || credential("SCRAM-SHA-256=[name=a,password=b]").expect("good");
        let (one, other) = (draw(), draw());
        assert_ne!(one.salt, other.salt);
        assert_ne!(one.stored_key, other.stored_key);
        assert_eq!(one.iterations, 4096);
        assert!((20..=26).contains(&one.salt.len()) && one.salt.is_ascii(), "{:?}", one.salt);
    }

    #[test]
    fn values_in_quotes_may_have_commas() {
        let with = |password: &str| {
            let salt = "salt=\"c2FsdA==\"";
            credential(&format!("SCRAM-SHA-256=[name=a, {salt},password={password}]"))
        };
        assert_eq!(with("\"x,y\"").expect("good").salt.as_ref(), b"salt");
        assert_ne!(with("\"x,y\"").expect("good"), with("x").expect("good"));
    }

    #[test]
    fn bad_arguments_say_what_is_wrong() {
        for (argument, expected) in [
            ("SCRAM-SHA-1=[name=a,password=b]", "SCRAM-SHA-1 is neither"),
            ("name=a,password=b", "name is neither"),
            ("SCRAM-SHA-256=name=a,password=b", "not in [ ]"),
            ("SCRAM-SHA-256=[password=b]", "there is no name"),
            ("SCRAM-SHA-256=[name=a]", "neither password nor saltedpassword"),
            ("SCRAM-SHA-256=[name=a,password=b,saltedpassword=\"YQ==\"]", "exclude each other"),
            ("SCRAM-SHA-256=[name=a,saltedpassword=\"YQ==\"]", "saltedpassword needs its salt"),
            ("SCRAM-SHA-256=[name=a,password=b,salt=x]", "salt is not base64"),
            ("SCRAM-SHA-256=[name=a,password=b,iterations=4095]", "not from 4096 to 16384"),
            ("SCRAM-SHA-256=[name=a,password=b,iterations=16385]", "not from 4096 to 16384"),
            ("SCRAM-SHA-256=[name=a,password=b,iterations=x]", "is no number"),
            ("SCRAM-SHA-256=[name=a,password=]", "password is empty"),
            ("SCRAM-SHA-256=[name=a,name=b]", "name is given twice"),
            ("SCRAM-SHA-256=[name=a,colour=b]", "colour is not known"),
            ("SCRAM-SHA-256=[name=a,password=\"b]", "a quote is not closed"),
        ] {
            let failure = credential(argument).expect_err(argument);
            assert!(failure.message.contains(expected), "{argument}: {}", failure.message);
        }
    }
}
