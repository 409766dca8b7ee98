//! The unit in which callers are counted by IP address.

use std::net::{IpAddr, Ipv6Addr};

/// The address, or the first address of its /64 if it is IPv6, since one customer has a whole /64.
/// An IPv4 address that is mapped to IPv6 becomes the IPv4 address.
pub fn customer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_customer_and_an_ipv4_address_another() {
        for (address, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:3::", "2001:db8:1:3::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(customer(address.parse().unwrap()), expected, "{address}");
        }
    }
}
