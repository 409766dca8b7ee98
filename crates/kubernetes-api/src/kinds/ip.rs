//! IP addresses and ranges, in fields that had no validation in older versions.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

/// The messages about an address; empty for a valid one.
pub fn problems(text: &str) -> Vec<String> {
    let why = match read(text) {
        None => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        // Some parsers read such numbers as octal.
        Some(_) if text.parse::<IpAddr>().is_err() => "must not have leading 0s",
        Some(address) if is_mapped(address) => "must not be an IPv4-mapped IPv6 address",
        Some(_) => return Vec::new(),
    };
    vec![why.to_owned()]
}

/// Parses an address. IPv4 addresses may have leading zeros.
pub fn read(text: &str) -> Option<IpAddr> {
    let padded = || {
        let parts: Option<Vec<u8>> = text.split('.').map(|part| part.parse().ok()).collect();
        let parts: [u8; 4] = parts?.try_into().ok()?;
        Some(IpAddr::V4(parts.into()))
    };
    text.parse().ok().or_else(padded)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Causes for an address, unless it is in `before`.
pub fn new_address<'a>(field: &str, address: &'a Value, before: &HashSet<&'a str>) -> Vec<Cause> {
    let text = str_of(address);
    if before.contains(text) {
        return Vec::new();
    }
    problems(text).iter().map(|problem| Cause::invalid(field, address, problem)).collect()
}

/// Why other hosts cannot reach the address of an endpoint.
pub fn of_endpoint(field: &str, text: &str) -> Vec<Cause> {
    let invalid = |why: &str| Cause::invalid(field, &text.into(), why);
    let Some(address) = read(text) else { return vec![invalid("must be a valid IP address")] };
    let (is_link_local, is_group) = match address.to_canonical() {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => {
            (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02)
        }
    };
    let mut causes = Vec::new();
    if address.to_canonical().is_unspecified() {
        causes.push(invalid(&format!("may not be unspecified ({text})")));
    }
    if address.to_canonical().is_loopback() {
        causes.push(invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if is_link_local {
        causes.push(invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if is_group {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        causes.push(invalid(why));
    }
    causes
}

/// A range of addresses in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The address as given, including the host bits.
    address: IpAddr,
    /// Prefix length in bits.
    length: u8,
}

impl Range {
    /// Parses a range; `None` for any other text. Allows leading zeros.
    pub fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = read(address)?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = is_number.then(|| length.parse().ok()).flatten()?;
        (length <= bits(address)).then_some(Self { address, length })
    }

    /// The first address of the range.
    fn first(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        }
    }

    /// Whether the range contains all of `other`, and more.
    pub fn is_wider_than(self, other: Self) -> bool {
        let around_other = Self { address: other.address, length: self.length };
        bits(self.address) == bits(other.address)
            && self.length < other.length
            && around_other.first() == self.first()
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// A cause for a range, unless it is in `before`.
pub fn new_range(field: &str, range: &Value, before: &HashSet<&str>) -> Option<Cause> {
    let text = str_of(range);
    let problem = range_problem(text).filter(|_| !before.contains(text));
    problem.map(|why| Cause::invalid(field, range, why))
}

/// The message for a text that is no range.
pub const RANGE_FORM: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// The message about a range; `None` for a valid one.
pub fn range_problem(text: &str) -> Option<&'static str> {
    let is_padded = || {
        let (address, length) = text.split_once('/').unwrap_or_default();
        address.parse::<IpAddr>().is_err() || (length != "0" && length.starts_with('0'))
    };
    let why = match Range::read(text) {
        None => RANGE_FORM,
        Some(_) if is_padded() => "must not have leading 0s in IP or prefix length",
        Some(range) if is_mapped(range.address) => "must not have an IPv4-mapped IPv6 address",
        Some(range) if range.address != range.first() => {
            "must not have bits set beyond the prefix length"
        }
        Some(_) => return None,
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_wider_than_those_that_are_only_a_part_of_it() {
        let is_wider = |one: &str, other: &str| {
            Range::read(one).unwrap().is_wider_than(Range::read(other).unwrap())
        };
        assert!(is_wider("10.0.0.0/8", "10.1.2.0/24"));
        assert!(is_wider("0.0.0.0/0", "10.0.0.0/1"));
        assert!(is_wider("::/0", "2001:db8::/64"));
        assert!(!is_wider("10.0.0.0/8", "10.0.0.0/8"));
        assert!(!is_wider("10.0.0.0/8", "11.0.0.0/24"));
        assert!(!is_wider("0.0.0.0/0", "::/64"));
        let none = ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/+1", "a/1", "/"];
        assert!(none.iter().all(|text| Range::read(text).is_none()));
    }
}
