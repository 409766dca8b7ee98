//! IP addresses and networks.

mod explain;

use std::net::{IpAddr, Ipv6Addr};

use api_meta::go_text::quoted;

use self::explain::explain;
use crate::value::{EvalResult, Value, fail, no_such_overload};

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(Ok(match (function, args) {
        ("ip", [Value::Text(text)]) => match address(text) {
            Ok(address) => Value::Ip(address),
            Err(error) => return Some(fail(error)),
        },
        ("isIP", [Value::Text(text)]) => Value::Bool(address(text).is_ok()),
        ("ip.isCanonical", [Value::Text(text)]) => match address(text) {
            Ok(address) => Value::Bool(address.to_string() == **text),
            Err(error) => return Some(fail(error)),
        },
        ("family", [Value::Ip(address)]) => Value::Int(if address.is_ipv4() { 4 } else { 6 }),
        ("isUnspecified", [Value::Ip(address)]) => Value::Bool(address.is_unspecified()),
        ("isLoopback", [Value::Ip(address)]) => Value::Bool(address.is_loopback()),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => {
            Value::Bool(is_link_local_multicast(*address))
        }
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Value::Bool(is_link_local(*address)),
        ("isGlobalUnicast", [Value::Ip(address)]) => {
            let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
            let special = address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || is_link_local(*address);
            Value::Bool(!special && !broadcast)
        }
        ("cidr", [Value::Text(text)]) => match network(text) {
            Ok((address, bits)) => Value::Cidr(address, bits),
            Err(error) => return Some(fail(error)),
        },
        ("isCIDR", [Value::Text(text)]) => Value::Bool(network(text).is_ok()),
        ("ip", [Value::Cidr(address, _)]) => Value::Ip(*address),
        ("prefixLength", [Value::Cidr(_, bits)]) => Value::Int(i64::from(*bits)),
        ("masked", [Value::Cidr(address, bits)]) => {
            Value::Cidr(network_address(*address, *bits), *bits)
        }
        ("containsIP", [Value::Cidr(net, bits), Value::Ip(address)]) => {
            Value::Bool(contains(*net, *bits, *address))
        }
        ("containsIP", [Value::Cidr(net, bits), Value::Text(text)]) => match address(text) {
            Ok(address) => Value::Bool(contains(*net, *bits, address)),
            Err(_) => return Some(no_such_overload()),
        },
        ("containsCIDR", [Value::Cidr(net, bits), Value::Cidr(other, length)]) => {
            Value::Bool(bits <= length && contains(*net, *bits, *other))
        }
        ("containsCIDR", [Value::Cidr(net, bits), Value::Text(text)]) => match network(text) {
            Ok((other, length)) => Value::Bool(bits <= &length && contains(*net, *bits, other)),
            Err(error) => return Some(fail(error)),
        },
        _ => return None,
    }))
}

fn address(text: &str) -> Result<IpAddr, String> {
    let Ok(address) = text.parse() else {
        return Err(match text.split_once('%') {
            Some((address, zone)) if !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok() => {
                format!("IP address {} with zone value is not allowed", quoted(text))
            }
            _ => format!(
                "IP Address {} parse error during conversion from string: {}",
                quoted(text),
                explain(text)
            ),
        });
    };
    refuse_mapped(address, text)
}

/// Refuses IPv4 addresses that are mapped to IPv6, because they are ambiguous.
fn refuse_mapped(address: IpAddr, text: &str) -> Result<IpAddr, String> {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text)))
        }
        address => Ok(address),
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    const FAILED: &str = "network address parse error during conversion from string: ";
    let invalid = |why: &str| format!("{FAILED}{FAILED}netip.ParsePrefix({}): {why}", quoted(text));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| invalid("no '/'"))?;
    let address: IpAddr = match (address.parse(), address.split_once('%')) {
        (Ok(address), _) => address,
        (_, Some((address, zone))) if !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok() => {
            return Err(invalid("IPv6 zones cannot be present in a prefix"));
        }
        _ => return Err(invalid(&explain(address))),
    };
    let canonical = bits.len() < 2 || !bits.starts_with(['0', '+', '-']);
    let bits = match bits.parse::<u64>() {
        Ok(bits) if canonical && bits <= i64::MAX as u64 => bits,
        _ => return Err(invalid(&format!("bad bits after slash: {}", quoted(bits)))),
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| invalid("prefix length out of range"))?;
    let address = refuse_mapped(address, text).map_err(|error| format!("{FAILED}{error}"))?;
    Ok((address, bits))
}

fn network_address(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

fn contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    net.is_ipv4() == address.is_ipv4()
        && network_address(net, bits) == network_address(address, bits)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}
